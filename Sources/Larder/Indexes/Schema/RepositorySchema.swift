// Schema/ holds the declarations of a collection: its name, its version, its indexes, and the migration steps from older versions.
// Invariant: a schema is a plain value, and opening a repository checks whether the schema fits the store.
// Called by LocalRepository and Store.

/// The declaration of a collection: its name in the store, the version of its records, its indexes and its migrations.
///
/// ```swift
/// let schema = RepositorySchema<Spot>(
///   "spots", version: 2, indexes: [.unique(\.slug), .ordered(\.country, \.name), .geo(\.latitude, \.longitude)],
///   migrations: [.init(from: 1) { object in object["timeZone"] = "UTC" }])
/// let spots = try await LocalRepository(jsonFile: url, schema: schema)
/// ```
///
/// A schema is a plain value. Opening a repository checks the schema against the store. Call ``validate()`` to check a schema in a test.
/// The store holds the name of each collection and the version of each record. Change the version whenever the stored form of a record
/// changes, and declare a migration step from the old version. Indexes are not stored, so you can add and remove them at any time.
///
/// A store with several collections takes a schema for each:
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(schema)
/// let visits = try await store.repository(RepositorySchema<Visit>("visits"))
/// ```
///
/// ## Threads and tasks
///
/// Create a schema on any thread, actor or task. Keep the schema in a `static let` beside the record type, so that every opening uses the
/// same schema. Larder runs the migration steps and reads the indexed properties on threads of its own and on the threads of callers.
/// Migration steps and indexed properties must therefore not depend on an actor.
///
/// ## Cost
///
/// An index costs memory for each record and time for each write, and is built when a query first uses it. Without an index, a query reads
/// every record. Older records are migrated when they are read, or in the background.
///
/// ## When to use another type
///
/// - Pass no schema for a file with one collection that has no indexes and only one version. The collection of a store without a schema is
///   named "records".
/// - Use ``StoreOptions`` for the settings of a whole store, such as limits and the time at which indexes are built.
/// - Use ``Store/dryRun(_:schema:options:)`` to try the migrations on a file without changing it.
/// - Use `synced(in:merge:clock:)` of `LarderSync` to make the schema of a synced collection from a plain schema.
///
/// ## Avoid
///
/// - Do not change the stored form of a record under the same ``version``, unless old records decode as the new type.
/// - Do not rename a collection without ``renamedFrom``. Without `renamedFrom`, the new name opens an empty collection, and the records
///   stay under the old name. Without `renamedFrom`, opening throws `.unsupported` only if the new or the old name is the default name
///   "records".
/// - Do not remove a migration step while a store may hold records of its version. Without the step, reading a record of its version fails
///   with `.migrationFailed`. If the schema has no migration step left, the record is decoded as it is.
/// - Do not write a migration step that changes the id of a record, or that returns different results for the same record.
/// - Do not open a collection of one ``Store`` with different schemas. A second opening with another record type or other indexes throws
///   `.unsupported`.
/// - Do not declare an index for every property. Index the properties that your queries often compare, sort by or search.
///
/// ## Topics
///
/// ### Declaring
/// - ``init(_:version:indexes:migrations:renamedFrom:residency:)``
/// - ``name``
/// - ``version``
/// - ``indexes``
/// - ``migrations``
/// - ``renamedFrom``
/// - ``residency``
/// - ``RepositoryIndex``
/// - ``Migration``
///
/// ### Testing
/// - ``validate()``
public struct RepositorySchema<Item: Codable & Identifiable & Sendable>: Sendable {
  /// Name of the collection in the store: "records" unless given.
  ///
  /// The name is 1 to 64 characters from `A-Z a-z 0-9 _ . -`, not starting with a dot or a hyphen. Opening refuses a name with other
  /// characters or another length with `.unsupported`. The store holds the collection's name and not the name of the Swift type, so you may
  /// rename the type without losing records. To rename the collection, pass its old name as ``renamedFrom``.
  public let name: String
  /// Version of the records that a repository with this schema writes, from 1 to 2147483647.
  ///
  /// Larder refuses a record of a newer version with `.newerSchema`, because no migration step leads back to an older version.
  public let version: Int

  /// Indexes that queries can use.
  ///
  /// See ``RepositoryIndex``.
  public let indexes: [RepositoryIndex<Item>]
  /// Steps that migrate older records, in order: each step from one version to the next, and the last step to ``version``.
  ///
  /// If a schema has no migration step, older records are decoded as they are. Leave out the migration steps if `Codable` can decode the
  /// older records as the new type.
  public let migrations: [Migration]
  /// Name that the collection had before, whose records move to ``name``, or `nil` for a collection that kept its name.
  ///
  /// The first opening with ``StoreOptions/Access/exclusive`` moves the records in one commit, unchanged. Later openings find no record
  /// under the old name and move no record. An older version of the app can no longer open the file, because Larder refuses the old name.
  /// If ``version`` is newer than the version of the records, Larder copies the store before the move, as before every migration. An older
  /// version of the app can open the copy. Keep the parameter `renamedFrom` for as long as files with the old name exist.
  ///
  /// Opening throws `.unsupported` and moves no record if the store holds records under both names, or records of another type. Opening
  /// also throws `.unsupported` if the collection was synced under the old name, or if the store is opened `.readOnly` or `.shared`. On a
  /// full disk, opening throws `.full`.
  ///
  /// Limit: the move leaves a tombstone for each record under the old name. If more records moved than
  /// ``StoreOptions/Limits-swift.struct/tombstones`` allows, an older version of the app that opens the file under an old name other than
  /// "records" finds an empty collection.
  public let renamedFrom: String?
  /// Place from which this collection's records are read, or `nil` for the place that ``StoreOptions/residency`` names.
  ///
  /// The first repository of a collection sets its residency for as long as the store is open. If the store is opened with
  /// ``Residency/full``, its opening reads every record, also the records of a collection that then leaves memory.
  public let residency: Residency?
  /// The trigger that `LarderSync` attaches to a synced collection, as an opaque value, or `nil` for a collection without a trigger.
  var attachment: (any Sendable)?

  /// Declares a collection.
  ///
  /// Opening a repository refuses migration steps with a gap, a repeat or a wrong order before it reads or writes any file. Call
  /// ``validate()`` in a test to find wrong migration steps.
  ///
  /// If a schema is created without a name, the store holds its records under the name "records". To name the collection later, pass
  /// `renamedFrom`:
  ///
  /// ```swift
  /// RepositorySchema<Spot>("spots", indexes: [.ordered(\.name)], renamedFrom: "records")
  /// ```
  public init(
    _ name: String = "records", version: Int = 1, indexes: [RepositoryIndex<Item>] = [], migrations: [Migration] = [],
    renamedFrom: String? = nil, residency: Residency? = nil
  ) {
    self.name = name
    self.residency = residency
    self.renamedFrom = renamedFrom
    self.version = version
    self.indexes = indexes
    self.migrations = migrations
  }

  /// Checks the names, the version and the migration steps of the schema, as the opening of a repository does.
  ///
  /// - Throws: `.unsupported`. If the migration steps are wrong, the message names the step that is missing, doubled or misplaced.
  public func validate() throws(RepositoryError) {
    guard CollectionName.isValid(name) else {
      throw RepositoryError(
        .unsupported, "expected a collection's name of 1 to 64 of A-Z a-z 0-9 _ . - that starts with a letter, digit or _, found another")
    }
    if let renamedFrom {
      // Names with the prefix "larder." belong to Larder's own collections, such as the collections of sync.
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

/// The rule for names of collections: 1 to 64 bytes of `A-Z a-z 0-9 _ . -`, where the first byte is not a dot or a hyphen.
enum CollectionName {
  static func isValid(_ name: String) -> Bool {
    // The limit of 64 counts bytes. Only ASCII is valid, so the check compares bytes instead of characters, which could combine several
    // scalars.
    let bytes = Array(name.utf8)
    guard (1...64).contains(bytes.count), let first = bytes.first else { return false }
    let isLetterDigitOrLowLine = { (byte: UInt8) in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
    }
    return isLetterDigitOrLowLine(first) && bytes.allSatisfy { isLetterDigitOrLowLine($0) || $0 == 0x2D || $0 == 0x2E }
  }
}
