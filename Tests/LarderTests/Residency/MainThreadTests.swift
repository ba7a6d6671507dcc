import Dispatch
import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Records that stay in the storage: a read of the storage leaves the main thread, and begins anew if its base was given up.
@Suite(.timeLimit(.minutes(1))) struct MainThreadTests {
  struct Spot: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var rank: Int
  }

  /// On Linux, an asynchronous main function leaves the main queue to other threads, so `Thread.isMainThread` is false on the main actor.
  private static let mainQueue: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// A spot of which one record does not decode.
  struct PickySpot: Codable, Identifiable, Sendable {
    let id: Int

    init(from decoder: any Decoder) throws {
      id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
      if id == 7 { throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "seven")) }
    }
  }

  /// A backend in memory that notes the threads of reads, and may count too many records.
  private final class WatchedBackend: PagingBackend {
    private let inner = InMemoryBackend()
    /// For each read of the storage, whether it was made on the main thread.
    private let reads = Mutex<[Bool]>([])
    private let surplus: Int
    /// Whether the base of the next read has been given up.
    private let isBaseGivenUp = Mutex(false)

    let storesIndexes: Bool

    init(surplus: Int = 0, storingIndexes storesIndexes: Bool = false) { (self.surplus, self.storesIndexes) = (surplus, storesIndexes) }

    /// Returns, for each read since the last call, whether it was made on the main thread.
    func takeReads() -> [Bool] {
      reads.withLock { reads in
        defer { reads = [] }
        return reads
      }
    }

    /// Lets the next read of the storage throw `.superseded`.
    func giveUpBase() { isBaseGivenUp.withLock { $0 = true } }

    func checkBase() throws(RepositoryError) {
      let isGivenUp = isBaseGivenUp.withLock { isGivenUp in
        defer { isGivenUp = false }
        return isGivenUp
      }
      if isGivenUp { throw RepositoryError(.superseded) }
    }

    func noteRead() {
      let isMain = Thread.isMainThread || DispatchQueue.getSpecific(key: MainThreadTests.mainQueue) != nil
      reads.withLock { $0.append(isMain) }
    }

    var name: String { inner.name }
    func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
      try inner.open(options, visit)
    }
    func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport { try inner.recover(report) }
    func commit(_ batch: WriteBatch) throws(RepositoryError) { try inner.commit(batch) }
    func flush() throws(RepositoryError) { try inner.flush() }
    func checkpoint() throws(RepositoryError) { try inner.checkpoint() }
    func verify() -> VerifyReport { inner.verify() }
    func backup(to url: URL) throws(RepositoryError) { try inner.backup(to: url) }
    func close() throws(RepositoryError) { try inner.close() }

    func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
      var opening = try inner.openPaged(options, visit)
      opening.collections = opening.collections.map { found in
        CollectionSummary(
          name: found.name, recordCount: found.recordCount + surplus, byteCount: found.byteCount, schemaVersions: found.schemaVersions)
      }
      return opening
    }

    func keepBase() throws(RepositoryError) -> any StoredBase { WatchedBase(try inner.keepBase(), self) }
    func holdsIndex(_ index: StoredIndexID) -> Bool { storesIndexes && inner.holdsIndex(index) }
    func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
      try inner.extendIndex(index, by: keys, isFirst: isFirst)
    }
    func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
      try inner.storeBoundaries(boundaries, of: index)
    }
    func dropIndex(_ index: StoredIndexID) throws(RepositoryError) { try inner.dropIndex(index) }
  }

  private final class WatchedBase: StoredBase {
    private let inner: any StoredBase
    private let backend: WatchedBackend
    var commit: Revision { inner.commit }

    init(_ inner: any StoredBase, _ backend: WatchedBackend) { (self.inner, self.backend) = (inner, backend) }

    func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
      backend.noteRead()
      try backend.checkBase()
      return try inner.records(keys, of: collection)
    }

    func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
      backend.noteRead()
      try backend.checkBase()
      return try inner.records(of: collection, after: key, limit: limit)
    }

    func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] {
      backend.noteRead()
      try backend.checkBase()
      return try inner.boundaries(of: index)
    }

    func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
      backend.noteRead()
      try backend.checkBase()
      return try inner.indexKeys(of: index, from: lower, below: upper)
    }

    func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
      backend.noteRead()
      try backend.checkBase()
      return try inner.indexKeyCount(of: index, from: lower, below: upper)
    }
  }

  /// Saves twenty spots, and opens the store again without a cache.
  private static func reopened(_ backend: WatchedBackend) async throws -> LocalRepository<Spot> {
    let options = StoreOptions(checkpoint: .manual, residency: .onDisk(cache: .bytes(0)))
    let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.rank)])
    let before = try await LocalRepository(backend: backend, schema: schema, options: options)
    try await before.save(contentsOf: (0..<20).map { Spot(id: $0, rank: $0 % 5) })
    if backend.storesIndexes {
      _ = try await before.fetch(Query().where(\.rank, .equal, 9))
      await before.core.indexBuilder.stored.awaitCopies()
      #expect(before.isStored())
    }
    try await before.close()
    return try await LocalRepository(backend: backend, schema: schema, options: options)
  }

  enum Read: CaseIterable, Sendable {
    case find, exists, query, queryWithoutIndex, first, count, countOfAll, loadAll, page, grouped
  }

  private nonisolated(nonsending) static func make(_ read: Read, in spots: LocalRepository<Spot>) async throws {
    switch read {
    case .find: #expect(try await spots.find(by: 3) == Spot(id: 3, rank: 3))
    case .exists: #expect(try await spots.exists(3))
    case .query: #expect(try await spots.fetch(Query().where(\.rank, .equal, 3)).count == 4)
    case .queryWithoutIndex: #expect(try await spots.fetch(Query().where(#Predicate { $0.id == 3 })).count == 1)
    case .first: #expect(try await spots.first(Query().sorted(by: \.rank))?.rank == 0)
    case .count: #expect(try await spots.count(Query().where(#Predicate { $0.rank == 3 && $0.id > 3 })) == 3)
    case .countOfAll: #expect(try await spots.count() == 20)
    case .loadAll: #expect(try await spots.loadAll().count == 20)
    case .page: #expect(try await spots.page(Query().sorted(by: \.rank), limit: 3).items.count == 3)
    case .grouped: #expect(try await spots.grouped(by: \.id).count == 20)
    }
  }

  @MainActor @Test(arguments: Read.allCases, [false, true])
  func aReadOfTheStorageLeavesTheMainThread(_ read: Read, storingIndexes: Bool) async throws {
    let backend = WatchedBackend(storingIndexes: storingIndexes)
    let spots = try await Self.reopened(backend)
    // The index in memory is built by a first query, so that it is not built by the read. The index in the storage is not read yet.
    if !storingIndexes { _ = try await spots.fetch(Query().where(\.rank, .equal, 9)) }
    _ = backend.takeReads()
    backend.noteRead()
    try #require(backend.takeReads() == [true], "this test must run on the main thread")
    try await Self.make(read, in: spots)
    let reads = backend.takeReads()
    #expect(!reads.isEmpty && !reads.contains(true), "\(reads)")
    try await spots.close()
  }

  @MainActor @Test func aStrictReadLeavesTheMainThread() async throws {
    let backend = WatchedBackend()
    try await Self.reopened(backend).close()
    let options = StoreOptions(checkpoint: .manual, residency: .onDisk(cache: .bytes(0)))
    let spots = try await LocalRepository(backend: backend, schema: RepositorySchema<PickySpot>("spots"), options: options)
    _ = backend.takeReads()
    #expect(await code { _ = try await spots.loadAll(strict: true) } == .decodingFailed)
    let reads = backend.takeReads()
    #expect(reads.count > 1 && !reads.contains(true), "\(reads)")
    try await spots.close()
  }

  @Test(arguments: Read.allCases, [false, true])
  func aReadWhoseBaseIsGivenUpBeginsAnew(_ read: Read, storingIndexes: Bool) async throws {
    let backend = WatchedBackend(storingIndexes: storingIndexes)
    let spots = try await Self.reopened(backend)
    if !storingIndexes { _ = try await spots.fetch(Query().where(\.rank, .equal, 9)) }
    backend.giveUpBase()
    try await Self.make(read, in: spots)
    backend.giveUpBase()
    try await Self.makeOnMainActor(read, in: spots)
    try await spots.close()
  }

  @MainActor private static func makeOnMainActor(_ read: Read, in spots: LocalRepository<Spot>) async throws {
    try await make(read, in: spots)
  }

  /// Memory is not reserved for a number that the storage has counted.
  @Test func aStorageThatCountsTooManyRecordsIsRead() async throws {
    let spots = try await Self.reopened(WatchedBackend(surplus: 1 << 40))
    #expect(spots.snapshot.count == 1 << 40 + 20)
    #expect(spots.snapshot.loadAll().count == 20)
    #expect(try await spots.loadAll().count == 20)
    #expect(try await spots.fetch(Query().where(\.rank, .greaterOrEqual, 0)).count == 20)
    #expect(try await spots.fetch(Query().sorted(by: \.rank)).count == 20)
    #expect(try await spots.fetch(Query().sorted(by: \.id)).count == 20)
    try await spots.close()
  }
}
