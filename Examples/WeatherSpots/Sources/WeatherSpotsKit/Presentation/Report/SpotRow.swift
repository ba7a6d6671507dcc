public import Larder

/// One spot of a list, with what the question has found out about it.
public struct SpotRow: Encodable, Sendable {
  /// The spot.
  public let spot: Spot
  /// The distance to the asked point; `nil` where there was none.
  public let kilometers: Double?
  /// The words that were found; `nil` where none were searched for.
  public let extract: TextExtract?

  /// Whether it was searched for.
  private let isFound: Bool
  /// The revision of the spot, for those who write it back.
  private let revision: Revision?

  /// Makes a row of a list, with a distance where there was a point.
  public init(_ spot: Spot, kilometers: Double? = nil, revision: Revision? = nil) {
    (self.spot, self.kilometers, self.revision) = (spot, kilometers, revision)
    (extract, isFound) = (nil, false)
  }

  /// Makes a row of what was searched for.
  public init(_ spot: Spot, extract: TextExtract?, revision: Revision? = nil) {
    (self.spot, self.extract, self.revision) = (spot, extract, revision)
    (kilometers, isFound) = (nil, true)
  }

  private enum CodingKeys: CodingKey { case distanceKm, extract, highlights, revision }

  /// Writes the spot with what was found out; always the same keys, whatever was asked.
  public func encode(to encoder: any Encoder) throws {
    try spot.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    if let revision { try container.encode(revision, forKey: .revision) }
    guard isFound else { return try container.encode(kilometers.map { ($0 * 1000).rounded() / 1000 }, forKey: .distanceKm) }
    try container.encode(extract?.text, forKey: .extract)
    try container.encode(extract?.highlights.map { [$0.lowerBound, $0.upperBound] }, forKey: .highlights)
  }
}
