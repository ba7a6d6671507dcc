// Schema/ holds the declarations of a collection: its name, its version, its indexes, and the steps from older versions. Invariant: a
// schema is a plain value, and opening a repository decides whether it fits a store. Called by LocalRepository and Store.

/// The declaration of a collection: its name in the store, the version of its records, its indexes and its migrations.
///
/// ```swift
/// let schema = RepositorySchema<Spot>(
///   "spots", version: 2, indexes: [.unique(\.slug), .ordered(\.country, \.name), .geo(\.latitude, \.longitude)],
///   migrations: [.init(from: 1) { object in object["timeZone"] = "UTC" }])
/// let spots = try await LocalRepository(jsonFile: url, schema: schema)
/// ```
///
/// A schema is a plain value. Opening a repository checks it against the store. Call ``validate()`` to check it in a test. The name and the
/// version are stored with every record, so change the version whenever the stored form of a record changes, and declare a step from the
/// old one. Indexes are not stored, so you can add and remove them at any time.
///
/// ## Cost
///
/// An index costs memory for each record and time for each write, and is built when a query first uses it. Without an index, a query reads
/// every record. Older records are migrated when they are read, or in the background.
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
  /// Name of the collection in the store: "records" unless given.
  ///
  /// It is 1 to 64 characters from `A-Z a-z 0-9 _ . -`, not starting with a dot or a hyphen. A name that breaks the rule is refused with
  /// `.unsupported`. The name is stored, so renaming the Swift type changes nothing. To rename the collection, pass its old name as
  /// ``renamedFrom``.
  public let name: String
  /// Version of the records that this code writes, from 1 to 2147483647.
  ///
  /// Records of a newer version are refused with `.newerSchema`.
  public let version: Int

  /// Indexes that queries can use.
  ///
  /// See ``RepositoryIndex``.
  public let indexes: [RepositoryIndex<Item>]
  /// Steps that migrate older records, in order: each from one version to the next, the last one to ``version``.
  ///
  /// Without any step, older records are decoded as they are, which is right for changes that `Codable` bridges.
  public let migrations: [Migration]
  /// Name that the collection had before, whose records move to ``name``, or `nil` for a collection that kept its name.
  ///
  /// The first opening with ``StoreOptions/Access/exclusive`` moves the records in one commit, unchanged. Later openings have nothing to
  /// move. An older version of the app can no longer open the file, because the old name is refused. If ``version`` is newer than the
  /// records, the store is copied first, as for every migration, and the older version can open the copy. Keep the parameter for as long as
  /// files with the old name exist.
  ///
  /// These are refused with `.unsupported`, and nothing is moved: records under both names, records of another type, a collection that was
  /// synced under the old name, and a store that is opened `.readOnly` or `.shared`. On a full disk opening throws `.full`.
  ///
  /// Limit: if more records moved than ``StoreOptions/Limits-swift.struct/tombstones`` allows, an older version that opens the file under
  /// an old name other than "records" finds an empty collection.
  public let renamedFrom: String?
  /// The engine's `trigger` on the collection, as an opaque value, or `nil` for most collections.
  var attachment: (any Sendable)?

  /// Declares a collection.
  ///
  /// Opening a repository refuses steps with a gap, a repeat or a wrong order before it touches any file. Call ``validate()`` to find such
  /// a mistake in a test.
  ///
  /// A store that was opened without a name holds its records under the name "records". To name the collection later, pass `renamedFrom`:
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

  /// Checks the names, the version and the steps, as opening a repository does.
  ///
  /// - Throws: `.unsupported`. For migrations the message names the step that is missing, doubled or misplaced.
  public func validate() throws(RepositoryError) {
    guard CollectionName.isValid(name) else {
      throw RepositoryError(
        .unsupported, "expected a collection's name of 1 to 64 of A-Z a-z 0-9 _ . - that starts with a letter, digit or _, found another")
    }
    if let renamedFrom {
      // Names with this prefix belong to Larder's own collections, such as those of sync.
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

/// The rule for names of collections: 1 to 64 bytes of `A-Z a-z 0-9 _ . -`, the first one not a dot or a hyphen.
enum CollectionName {
  static func isValid(_ name: String) -> Bool {
    // Bytes and not characters: the limit of 64 counts bytes, and only ASCII is valid.
    let bytes = Array(name.utf8)
    guard (1...64).contains(bytes.count), let first = bytes.first else { return false }
    let isLetterDigitOrLowLine = { (byte: UInt8) in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
    }
    return isLetterDigitOrLowLine(first) && bytes.allSatisfy { isLetterDigitOrLowLine($0) || $0 == 0x2D || $0 == 0x2E }
  }
}
