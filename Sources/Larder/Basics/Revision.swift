/// The number of the commit that last changed a record.
///
/// Within a store it only ever grows. Compare-and-set, change feeds and verification rest on it. Use it to save a record only if no other
/// task has changed it since you read it:
///
/// ```swift
/// guard let revision = spots.revision(of: id), var spot = try await spots.find(by: id) else { return }
/// spot.rating += 1
/// try await spots.save(spot, ifRevision: revision)  // throws `.revisionMismatch` if it was changed meanwhile
/// ```
///
/// Every successful write takes the next number, and one that changes nothing takes none. A migration that rewrites a record does not
/// change its meaning, so the record keeps its revision. In a `.shared` store it gets a new one, because processes follow each other by it.
///
/// Numbers start at 1, and ``zero`` stands before the first commit. The largest is 2⁶³ − 1, a limit of SQLite's integers.
public struct Revision: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The commit number.
  public let number: UInt64

  /// Makes the revision of a commit number.
  public init(_ number: UInt64) { self.number = number }

  /// The state of a store in which nothing was committed yet.
  public static let zero = Revision(0)

  /// Reads the bare number.
  public init(from decoder: any Decoder) throws {
    number = try decoder.singleValueContainer().decode(UInt64.self)
  }

  /// Writes the bare number.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(number)
  }

  /// Whether the left commit came first.
  public static func < (left: Revision, right: Revision) -> Bool { left.number < right.number }
  /// The number in decimal.
  public var description: String { String(number) }
}
