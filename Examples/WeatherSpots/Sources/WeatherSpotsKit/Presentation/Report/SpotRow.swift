public import Larder

/// A spot in the JSON of a list or a search, with its distance or its search hit.
public struct SpotRow: Encodable, Sendable {
  /// The spot.
  public let spot: Spot
  /// Distance to the requested point in kilometres, or `nil` if no point was given.
  public let kilometers: Double?
  /// Text around the words found, or `nil` in a list and for a hit without an extract.
  public let extract: TextExtract?

  /// Whether the row is a search hit.
  private let isFound: Bool
  /// Revision of the spot, for a caller that writes the spot back.
  private let revision: Revision?

  /// Creates a row of a list, with the distance if a point was given.
  public init(_ spot: Spot, kilometers: Double? = nil, revision: Revision? = nil) {
    (self.spot, self.kilometers, self.revision) = (spot, kilometers, revision)
    (extract, isFound) = (nil, false)
  }

  /// Creates a row for a search hit.
  public init(_ spot: Spot, extract: TextExtract?, revision: Revision? = nil) {
    (self.spot, self.extract, self.revision) = (spot, extract, revision)
    (kilometers, isFound) = (nil, true)
  }

  private enum CodingKeys: CodingKey { case distanceKm, extract, highlights, revision }

  /// Writes the spot's keys, then those of the distance or of the search hit.
  ///
  /// A list always has `distance_km`, a search always `extract` and `highlights`, with `null` for a missing value. `revision` is left out
  /// if the row has none.
  public func encode(to encoder: any Encoder) throws {
    // The spot's keys and the row's go into one flat object, which two keyed containers of one encoder share.
    try spot.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    if let revision { try container.encode(revision, forKey: .revision) }
    // Rounded to metres, because more digits of a distance between two points are noise.
    guard isFound else { return try container.encode(kilometers.map { ($0 * 1000).rounded() / 1000 }, forKey: .distanceKm) }
    // Encoding the optional itself writes null where `encodeIfPresent` would leave the key out.
    try container.encode(extract?.text, forKey: .extract)
    try container.encode(extract?.highlights.map { [$0.lowerBound, $0.upperBound] }, forKey: .highlights)
  }
}
