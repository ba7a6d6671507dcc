public import Foundation

extension LocalRepository {
  /// Opens or creates a store in a JSON file, as the store's only repository.
  ///
  /// Missing directories are created with access for their owner only. By default, no second opening may write to the store until
  /// ``close()``. If a store is refused, its files stay unchanged. If recovering from a crash fails (`.inputOutput`, `.full`), no
  /// acknowledged write is lost.
  /// - Throws: `.locked` or `.alreadyOpen` if the store is open elsewhere. `.protectedDataUnavailable` if the system refuses access.
  ///   `.unsupported` for options that a file cannot serve, and in the cases that ``init(backend:schema:options:)`` lists. See
  ///   <doc:Errors>.
  public init(
    jsonFile: URL, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try await self.init(backend: JSONFileBackend(file: jsonFile), schema: schema, options: options)
  }

  /// Opens or creates a JSON store in the app's own directory, within the platform's default directory for data.
  ///
  /// The platform's directory for data is `$XDG_DATA_HOME` or `~/.local/share` on Linux, as the XDG Base Directory Specification says, and
  /// Application Support elsewhere. The name of the app's directory is the bundle's identifier, or the name of the process if the bundle
  /// has no identifier. Pass a file name of one path component, such as "spots.json".
  /// - Throws: `.unsupported` for a name that is empty, `.` or `..`, or contains a slash or a NUL. The other errors are those of
  ///   ``init(jsonFile:schema:options:)``.
  public init(
    filename: String, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    // A slash in the name would lead out of the app's directory, and system calls end a path at its first NUL byte.
    guard !filename.isEmpty, !filename.utf8.contains(0x2F), !filename.utf8.contains(0), filename != ".", filename != ".." else {
      throw RepositoryError(.unsupported, "a file name is one path component")
    }
    let file = DataDirectory.url().appendingPathComponent(filename, isDirectory: false)
    try await self.init(jsonFile: file, schema: schema, options: options)
  }
}

extension LocalRepository {
  /// Creates a repository in memory with the given options, which writes no file.
  ///
  /// ```swift
  /// let spots = try await LocalRepository(inMemory: RepositorySchema<Spot>("spots"), options: StoreOptions(indexing: .eager))
  /// ```
  ///
  /// - Throws: `.unsupported` for a schema that cannot be stored, and for options with access by several processes.
  public init(inMemory schema: RepositorySchema<Item>, options: StoreOptions) async throws(RepositoryError) {
    try await self.init(backend: InMemoryBackend(), schema: schema, options: options)
  }
}

extension LocalRepository {
  /// Creates a repository in memory that holds samples, for previews and for tests of views.
  ///
  /// ```swift
  /// #Preview {
  ///   SpotList(spots: LocalRepository(previewing: [Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5)]))
  /// }
  /// ```
  ///
  /// The initializer neither waits nor throws, and the repository is readable when the initializer returns. Reads, writes, queries and live
  /// results work as in any other repository, and the records are freed together with the repository. Use
  /// ``init(jsonFile:schema:options:)`` for values that must outlive the process, and ``init(inMemory:)`` for a repository that refuses a
  /// wrong schema.
  ///
  /// A sample that cannot be stored is left out, and ``OpenReport/leftOut`` has an error with the number of the sample and the reason. All
  /// samples are left out if the schema itself is refused. Samples that violate a unique index are kept, and listed in
  /// ``OpenReport/duplicates``. ``OpenReport/isClean`` is `false` if a sample was left out or violates a unique index. Of two samples with
  /// the same id, the last one is kept.
  ///
  /// Cost: encodes and decodes every sample on the calling thread.
  public init(previewing samples: [Item], schema: RepositorySchema<Item> = .init()) {
    var (schema, samples, leftOut) = (schema, samples, [RepositoryError]())
    do throws(RepositoryError) { try schema.validate() } catch {
      leftOut.append(error)
      // The indexes of a refused schema are kept, because a query for a place or for words throws without its index.
      (schema, samples) = (RepositorySchema(indexes: schema.indexes), [])
    }
    let coder = RecordCoder<Item>(schemaVersion: schema.version, limits: .init(), refusal: schema.placeRefusal)
    var records: [RecordKey: StoredRecord] = [:]
    for (index, sample) in samples.enumerated() {
      do throws(RepositoryError) {
        // The sample is decoded too, so that a sample that cannot be read back is listed in the open report and not just missing in the
        // view.
        let record = try coder.encode(sample, decoding: true)
        records[record.key] = StoredRecord(
          collection: schema.name, key: record.key, revision: Revision(1), schemaVersion: record.schemaVersion, value: record.value)
      } catch {
        leftOut.append(
          RepositoryError(
            error.code, "sample \(index + 1) of \(samples.count) was left out: \(error.message)", keyHash: error.keyHash,
            underlying: error.underlying))
      }
    }
    let core = StoreCore.previewing(records.values.sorted { $0.key < $1.key }, leftOut)
    // The store is new, so no other repository can have opened the collection as another type.
    self.init(core: core, collection: core.collection(named: schema.name), schema: schema, ownsStore: true)
    prepareNow()
  }
}

// The members below give other products of this package access to the store. LarderBlobs keeps its index in a repository, and does its work
// on the repository's executor, between the commits of the repository.

extension LocalRepository {
  /// Serial executor on which the store commits.
  package nonisolated var executor: StoreExecutor { core.executor }

  /// Checks that the store accepts writes.
  ///
  /// - Throws: `.poisoned` after a failed sync, `.suspended`, `.closed`.
  package nonisolated func checkWritable() throws(RepositoryError) { try core.state.checkWritable() }

  /// Closes a repository that was just opened, without writing to its files.
  package nonisolated func abandon() async { await core.abandon() }

  /// Returns the collection and the key under which the record with this id is stored.
  ///
  /// - Throws: `.invalidKey` for an id that cannot be a key.
  package nonisolated func address(of id: Item.ID) throws(RepositoryError) -> RecordAddress {
    RecordAddress(collection: schema.name, key: try coder.keys.key(for: id))
  }
}
