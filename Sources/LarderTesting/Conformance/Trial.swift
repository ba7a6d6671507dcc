internal import Foundation
internal import Larder

/// One run of a conformance rule: the storage location, the open backend, and the records that the backend must hold.
final class Trial {
  let place: BackendPlace
  /// Record or tombstone that the backend must hold for each address, that is, collection and key.
  private(set) var expected: [RecordAddress: StoredRecord] = [:]
  /// Number of the newest commit that the rule has made.
  private(set) var commit: UInt64 = 0
  private var openBackend: (any StorageBackend)?

  init(_ place: BackendPlace) { self.place = place }

  /// Backend that the rule has opened.
  var backend: any StorageBackend {
    get throws {
      guard let openBackend else { throw Violation(seen: "the rule uses a backend that it has not opened") }
      return openBackend
    }
  }

  // MARK: Opening and ending

  /// Makes and opens a new backend on the store, and compares its records with the expected ones.
  @discardableResult
  func open(_ options: StoreOptions = .init()) throws -> OpenReport { try open(place.makeBackend(), options) }

  /// Opens a given backend, and compares its records with the expected ones.
  @discardableResult
  func open(_ backend: any StorageBackend, _ options: StoreOptions = .init()) throws -> OpenReport {
    let (report, records) = try Self.open(backend, options)
    // `openBackend` is set before the comparison, so that `end()` closes the backend if the comparison throws.
    openBackend = backend
    try compare(records)
    try require(report.commit.number == commit, "opening reports commit \(report.commit) instead of \(commit)")
    return report
  }

  /// Takes over a backend that a rule has opened itself, so that ``end()`` closes it.
  func take(_ backend: any StorageBackend) { openBackend = backend }

  /// Opens a backend and collects its records.
  static func open(_ backend: any StorageBackend, _ options: StoreOptions = .init()) throws -> (OpenReport, [StoredRecord]) {
    var records: [StoredRecord] = []
    let report = try backend.openAndRecover(options) { records.append($0) }
    return (report, records)
  }

  /// Resumes a suspended backend, and compares the commits of other backends that it returns with the expected records.
  ///
  /// - Parameter known: The newest commit before the suspension, or `nil` if no other backend has committed since.
  func resume(_ backend: any StorageBackend, after known: UInt64? = nil) throws {
    // A backend whose `resume` returns `false` is closed, and a store would open it and read all records again.
    guard try backend.resume() else {
      try open(backend)
      return
    }
    openBackend = backend
    guard let known else { return }
    guard let told = try backend.foreignCommits(after: Revision(known)) else {
      throw Violation(seen: "a backend goes on by itself and tells nothing, though another has written meanwhile")
    }
    try require(told.commit.number == commit, "a resumed backend tells of commit \(told.commit) instead of \(commit)")
    // A correct backend returns each record address once. If a faulty backend returns an address twice, the last state of the address is
    // compared.
    let found = Dictionary(told.records.map { ($0.address, $0.value) }) { $1 }
    for record in expected.values where record.revision.number > known {
      try require(
        found[record.address] == .some(record.value), "\(Self.name(record)), which another has written, is not told after resuming")
    }
  }

  func close() throws {
    // If `close` throws, `openBackend` stays set, so that `end()` closes the backend again before the files of the store are removed.
    try backend.close()
    openBackend = nil
  }

  /// Drops the backend without closing it, as a crash of the process does.
  func drop() { openBackend = nil }

  @discardableResult
  func reopen(_ options: StoreOptions = .init()) throws -> OpenReport {
    try close()
    return try open(options)
  }

  /// Closes the backend if the rule has left it open.
  func end() {
    do { try openBackend?.close() } catch { return }  // the rule was judged already, and a broken backend may fail to close
  }

  // MARK: Writing

  /// Record to write, or a tombstone if it has no value.
  struct Write {
    var collection = "records"
    var key: String
    var value: Data?
    var version = 1
    /// Revision of the record, or `nil` for the number of the commit that writes it.
    var revision: Revision?

    static func put(_ key: String, _ value: String = #"{"n":1}"#, in collection: String = "records", version: Int = 1) -> Write {
      Write(collection: collection, key: key, value: Data(value.utf8), version: version)
    }

    static func delete(_ key: String, in collection: String = "records") -> Write {
      Write(collection: collection, key: key, value: nil)
    }
  }

  /// Commits one batch, in which each group of writes is one commit.
  ///
  /// - Parameter edits: Edits of the stored indexes that the batch names.
  func commit(
    _ groups: [[Write]], _ durability: Durability = .durable, to other: (any StorageBackend)? = nil, edits: [IndexEdit] = []
  ) throws {
    let batch = batch(groups, from: commit + 1, durability, edits: edits)
    try (other ?? backend).commit(batch)
    // The expected records change only after the commit has succeeded, because a batch that throws must leave nothing in the store.
    for record in batch.records { expected[record.address] = record }
    commit = batch.commits.upperBound
  }

  /// Commits a batch with one commit.
  func commit(_ writes: Write..., durability: Durability = .durable) throws { try commit([writes], durability) }

  /// Commits a record as a migration does, with a newer schema version and its old revision.
  func rewrite(_ key: String, _ value: String, version: Int) throws {
    var write = Write.put(key, value, version: version)
    write.revision = expected[RecordAddress(collection: write.collection, key: RecordKey(key))]?.revision
    try commit(write)
  }

  /// Makes a batch whose groups of writes have the commit numbers from `first` on.
  func batch(
    _ groups: [[Write]], from first: UInt64, _ durability: Durability = .durable, edits: [IndexEdit] = []
  ) -> WriteBatch {
    var records: [StoredRecord] = []
    for (index, writes) in groups.enumerated() {
      for write in writes {
        records.append(
          StoredRecord(
            collection: write.collection, key: RecordKey(write.key), revision: write.revision ?? Revision(first + UInt64(index)),
            schemaVersion: write.version, value: write.value))
      }
    }
    return WriteBatch(
      records: records, commits: first...(first + UInt64(groups.count) - 1), durability: durability, indexEdits: edits,
      indexes: Set(edits.map(\.index)))
  }

  /// Removes a tombstone from the expected records, because the limit of tombstones allows the backend to drop it.
  func forgetTombstone(_ key: String) { expected[RecordAddress(collection: "records", key: RecordKey(key))] = nil }

  // MARK: Judging

  func require(_ condition: Bool, _ seen: @autoclosure () -> String) throws {
    if !condition { throw Violation(seen: seen()) }
  }

  /// Runs a body that must throw a `RepositoryError` with one of the codes.
  func requireError(_ codes: RepositoryError.Code..., from what: String, _ body: () throws -> Void) throws {
    let names = codes.map(\.description).joined(separator: " or ")
    do {
      try body()
    } catch let error as RepositoryError {
      return try require(codes.contains(error.code), "\(what) throws \(error.code) instead of \(names)")
    } catch {
      throw Violation(seen: "\(what) throws \(type(of: error)) instead of a RepositoryError")
    }
    throw Violation(seen: "\(what) does not throw, instead of \(names)")
  }

  /// Compares the records of a backend with the expected ones: each address exactly once, and all fields equal.
  func compare(_ records: [StoredRecord]) throws {
    var missing = expected
    var found: Set<RecordAddress> = []
    for record in records {
      try require(found.insert(record.address).inserted, "\(Self.name(record)) is handed out twice")
      guard let wanted = missing.removeValue(forKey: record.address) else {
        throw Violation(seen: "\(Self.name(record)) is handed out and was never stored, or is deleted")
      }
      try require(record.revision == wanted.revision, "\(Self.name(record)) has revision \(record.revision), not \(wanted.revision)")
      try require(
        record.schemaVersion == wanted.schemaVersion,
        "\(Self.name(record)) has schema version \(record.schemaVersion), not \(wanted.schemaVersion)")
      // A lost deletion and a changed value are different mistakes of a backend, so each of them has its own message.
      if record.value == nil, wanted.value != nil { throw Violation(seen: "\(Self.name(record)) comes back as a tombstone") }
      if record.value != nil, wanted.value == nil { throw Violation(seen: "\(Self.name(record)) was deleted and comes back with a value") }
      try require(record.value == wanted.value, "\(Self.name(record)) comes back with other bytes")
    }
    // A dictionary has another order in each run. The missing records are sorted, so that a failure names the same record each time.
    let lost = missing.values.sorted { $0.address < $1.address }
    guard let first = lost.first else { return }
    throw Violation(seen: "\(lost.count) of \(expected.count) addresses are not handed out, such as \(Self.name(first))")
  }

  private static func name(_ record: StoredRecord) -> String {
    // A key has up to 1 KiB and any characters. Quoted and cut to 40 characters, the key stays on one line of the report.
    let kind = record.value == nil ? "tombstone" : "record"
    return "the \(kind) \(record.collection)/\(record.key.text.prefix(40).debugDescription)"
  }
}
