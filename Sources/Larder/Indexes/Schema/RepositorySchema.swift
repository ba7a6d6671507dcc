// Schema/ holds what an app declares of a collection: its name, its version, and the steps from older versions; and what is done with them.
// Invariant: a schema is a plain value; whether it fits a store is decided when a repository is opened. Called by
// LocalRepository and Store.

/// The declaration of a collection: its name in the store, the version of its records, its indexes and its migrations.
///
/// ```swift
/// let schema = RepositorySchema<Spot>(
///   "spots", version: 2, indexes: [.unique(\.slug), .ordered(\.country, \.name), .geo(\.latitude, \.longitude)],
///   migrations: [.init(from: 1) { object in object["timeZone"] = "UTC" }])
/// let spots = try await LocalRepository(jsonFile: url, schema: schema)
/// ```
///
/// A schema is a plain value. Opening a repository checks it against the store; ``validate()`` checks it in a test. The name and the
/// version are stored with every record, so change the version whenever the stored form of a record changes, and declare a step from the
/// old one. Indexes are not stored: they can be added and removed at any time.
///
/// ## Cost
///
/// An index costs memory for each record and time for each write, and is made when a query first uses it. Without one, a query looks at
/// every record. Older records are brought up when they are read, or in the background.
///
/// ## Topics
///
/// ### Declaring
/// - ``init(_:version:indexes:migrations:renamedFrom:)``
/// - ``name``
/// - ``version``
/// - ``indexes``
/// - ``migrations``
/// - ``renamedFrom``
/// - ``RepositoryIndex``
/// - ``Migration``
///
/// ### Testing
/// - ``validate()``
public struct RepositorySchema<Item: Codable & Identifiable & Sendable>: Sendable {
  /// The name of the collection in the store: "records" unless given.
  ///
  /// It is 1 to 64 characters from `A-Z a-z 0-9 _ . -`, not starting with a dot or a hyphen. It is stored. Renaming the Swift type changes
  /// nothing. To rename the collection, name the old one in ``renamedFrom``. A name that breaks the rule is refused with `.unsupported`.
  public let name: String
  /// The version of the records that this code writes, from 1 to 2147483647.
  ///
  /// Records of a newer version are refused with `.newerSchema`.
  public let version: Int

  /// The indexes that queries can use; see ``RepositoryIndex``.
  public let indexes: [RepositoryIndex<Item>]
  /// The steps that bring older records up, in order: each from one version to the next, the last one to ``version``.
  ///
  /// Without any, older records are decoded as they are, which is right for changes that `Codable` bridges.
  public let migrations: [Migration]
  /// The name that the collection had before, whose records move to ``name``; `nil` for a collection that kept its name.
  ///
  /// The first opening with ``StoreOptions/Access/exclusive`` moves them in one commit, as they are stored. Later openings find it done. An
  /// older version of the app can no longer open the file: the old name is refused. Where ``version`` is newer than the records, the store
  /// is copied before, as for every migration, and the older version can open the copy. Keep the parameter for as long as there are files
  /// of the old name.
  ///
  /// Refused with `.unsupported`, and nothing is moved: records under both names, records of another type, a collection that was synced
  /// under the old name, and a store that is opened `.readOnly` or `.shared`. On a full disk opening throws `.full`.
  ///
  /// Limit: where more records moved than ``StoreOptions/Limits-swift.struct/tombstones`` allows, an older version that opens the file
  /// under an old name other than "records" finds an empty collection.
  public let renamedFrom: String?
  /// Declaration that a higher floor attaches to the collection: `trigger` of the engine. `nil` for most collections.
  var attachment: (any Sendable)?

  /// Declares a collection.
  ///
  /// Steps with a gap, a repeat or a wrong order are refused when a repository is opened, before any file is touched; ``validate()`` tells
  /// a test.
  ///
  /// A store that was opened without a name holds its records under the name "records". To name the collection later, say so:
  ///
  /// ```swift
  /// RepositorySchema<Spot>("spots", indexes: [.ordered(\.name)], renamedFrom: "records")
  /// ```
  public init(
    _ name: String = "records", version: Int = 1, indexes: [RepositoryIndex<Item>] = [], migrations: [Migration] = [],
    renamedFrom: String? = nil
  ) {
    self.name = name
    self.renamedFrom = renamedFrom
    self.version = version
    self.indexes = indexes
    self.migrations = migrations
  }

  /// Checks what opening a repository checks: the names, the version, and the steps.
  ///
  /// - Throws: `.unsupported`; for migrations the message names the step that is missing, doubled or misplaced.
  public func validate() throws(RepositoryError) {
    guard CollectionName.isValid(name) else {
      throw RepositoryError(
        .unsupported, "expected a collection's name of 1 to 64 of A-Z a-z 0-9 _ . - that starts with a letter, digit or _, found another")
    }
    if let renamedFrom {
      guard CollectionName.isValid(renamedFrom), renamedFrom != name, !renamedFrom.hasPrefix("larder.") else {
        throw RepositoryError(
          .unsupported,
          "expected in `renamedFrom` the name that the collection \(name) had before, found \(renamedFrom == name ? "the same" : "no name of one")"
        )
      }
    }
    guard RecordLimit.schemaVersions.contains(version) else {
      throw RepositoryError(
        .unsupported, "expected a schema version from 1 to \(RecordLimit.schemaVersions.upperBound), found \(version)")
    }
    if let defect = MigrationPlan(version: version, steps: migrations).defect { throw defect }
  }
}

/// The rule for the names of collections.
enum CollectionName {
  static func isValid(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    guard (1...64).contains(bytes.count), let first = bytes.first else { return false }
    let isLetterDigitOrLowLine = { (byte: UInt8) in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
    }
    return isLetterDigitOrLowLine(first) && bytes.allSatisfy { isLetterDigitOrLowLine($0) || $0 == 0x2D || $0 == 0x2E }
  }
}
