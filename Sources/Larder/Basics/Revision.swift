/// The number of the commit that last changed a record.
///
/// The revisions of a store only ever grow. Compare-and-set writes, change feeds and verification depend on the order of revisions. Use a
/// revision to save a record only if no other task has changed the record since you read it:
///
/// ```swift
/// guard let revision = spots.revision(of: id), var spot = try await spots.find(by: id) else { return }
/// spot.rating += 1
/// try await spots.save(spot, ifRevision: revision)  // throws `.revisionMismatch` if it was changed meanwhile
/// ```
///
/// Every write that changes a record takes the next commit number. A write that changes nothing takes no commit number. A migration that
/// rewrites a record does not change the record's meaning, so the record keeps its revision. In a `.shared` store a migrated record gets a
/// new revision, because other processes find changed records by their revisions.
///
/// Commit numbers start at 1, and ``zero`` is the revision of a store before its first commit. The largest commit number is 2⁶³ − 1, a
/// limit of SQLite's integers.
public struct Revision: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The commit number.
  public let number: UInt64

  /// Makes the revision of a commit number.
  public init(_ number: UInt64) { self.number = number }

  /// The revision of a store in which no commit was made yet.
  public static let zero = Revision(0)

  /// Decodes the revision from a single number.
  public init(from decoder: any Decoder) throws {
    number = try decoder.singleValueContainer().decode(UInt64.self)
  }

  /// Encodes the revision as a single number.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(number)
  }

  /// Whether the commit of the left revision is earlier than the commit of the right one.
  public static func < (left: Revision, right: Revision) -> Bool { left.number < right.number }
  /// The commit number as decimal text.
  public var description: String { String(number) }
}
