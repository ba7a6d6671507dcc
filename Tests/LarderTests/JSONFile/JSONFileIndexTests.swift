import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// Indexes whose keys are in the index file.
@Suite("JSON: indexes in the index file", .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct JSONFileIndexTests {
  private static let (first, second) = (id("first"), id("second"))

  private static func id(_ name: String) -> StoredIndexID { StoredIndexID(collection: "spots", name: name) }

  private static func keys(_ range: Range<Int>, size: Int = 40) -> [Data] {
    range.map { Data("\(1_000_000 + $0) \(String(repeating: "v", count: size))".utf8) }
  }

  /// A store of the backend, which a test can end and open again.
  private final class Opened {
    let files: SimulatedFileSystem
    private(set) var backend: JSONFileBackend
    private(set) var commit: UInt64 = 0

    init(_ count: Int = 100, journaled: Int = 0) throws {
      files = try PagedJSONStore(count, journaled: journaled).files
      backend = PagedJSONStore.backend(files)
      try open()
    }

    func open(_ other: (any FileSystem)? = nil) throws {
      backend.abandon()
      backend = PagedJSONStore.backend(other ?? files)
      commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    }

    func build(_ index: StoredIndexID, _ keys: [Data]) throws {
      try backend.extendIndex(index, by: keys, isFirst: true)
      try backend.storeBoundaries([Data()], of: index)
    }

    /// Saves a record in a batch that names some indexes.
    func save(_ edits: [IndexEdit] = [], naming indexes: Set<StoredIndexID>, key: String = "key 1001") throws {
      let record = PagedJSONStore.record(key, "{\(commit + 1)}", commit + 1)
      try backend.commit(
        WriteBatch(
          records: [record], commits: (commit + 1)...(commit + 1), durability: .buffered, indexEdits: edits, indexes: indexes,
          recordCounts: ["spots": 100]))
      commit += 1
    }

    func keys(of index: StoredIndexID) throws -> [Data] { try backend.keepBase().indexKeys(of: index, from: Data(), below: nil) }

    var indexSize: Int { files.contents(of: PagedJSONStore.index)?.count ?? 0 }
  }

  // MARK: Life

  @Test func anIndexFollowsKillsAndCheckpoints() throws {
    let store = try Opened(journaled: 20)
    var keys = Self.keys(0..<3_000)
    try store.build(Self.first, keys)
    try store.save([IndexEdit(index: Self.first, removed: keys[7], added: Data("0".utf8))], naming: [Self.first])
    keys = [Data("0".utf8)] + keys.filter { $0 != keys[7] }
    try store.backend.flush()
    try store.open()
    #expect(store.backend.holdsIndex(Self.first))
    let found = try store.keys(of: Self.first)
    #expect(found == keys)
    // The checkpoint is in the background, and a commit comes meanwhile.
    let base = try store.backend.keepBase()
    var work = try store.backend.beginCheckpoint()
    try store.save([IndexEdit(index: Self.first, removed: keys[9], added: nil)], naming: [Self.first])
    while let part = work {
      part()
      work = try store.backend.continueCheckpoint()
    }
    let old = try base.indexKeys(of: Self.first, from: Data(), below: nil)
    #expect(old == keys)
    keys.remove(at: 9)
    let moved = try store.keys(of: Self.first)
    #expect(moved == keys)
    try store.backend.flush()
    try store.open()
    let reopened = try store.keys(of: Self.first)
    #expect(reopened == keys)
    let count = try store.backend.keepBase().indexKeyCount(of: Self.first, from: keys[5], below: keys[2_500])
    #expect(count == 2_495)
  }

  @Test func anIndexLacksTheChangesAfterTheLastSlot() throws {
    let store = try Opened(journaled: 8)
    try store.build(Self.first, Self.keys(0..<100))
    // Records of the main file, of the journal, deleted ones and new ones.
    for key in ["key 1001", "key 1000", "key 1007", "new", "new"] { try store.save(naming: [Self.first], key: key) }
    try store.open()
    let backend = store.backend
    #expect(!backend.holdsIndex(Self.first))
    let missed = try backend.missedChanges(of: Self.first)
    #expect(missed.map { $0.after?.key.text } == ["key 1000", "key 1001", "key 1007", "new"])
    // The journal has deleted the first, and changed the third.
    #expect(missed.map { $0.before != nil } == [false, true, true, false])
    let before = try #require(missed[2].before?.value)
    #expect(String(decoding: before, as: UTF8.self).contains("journaled"))
    let edit = IndexEdit(index: Self.first, removed: nil, added: Data("n".utf8))
    try backend.catchUpIndex(Self.first, by: [edit])
    #expect(backend.holdsIndex(Self.first))
    // The store may still drop the index, so the file has it as it was until the next slot is written.
    try store.open()
    #expect(!store.backend.holdsIndex(Self.first))
    try store.backend.catchUpIndex(Self.first, by: [edit])
    try store.backend.flush()
    try store.open()
    let found = try store.keys(of: Self.first)
    #expect(found == Self.keys(0..<100) + [Data("n".utf8)])
  }

  @Test func aCommitBeforeCatchingUpDropsTheIndex() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    try store.save(naming: [Self.first])
    try store.open()
    #expect(!store.backend.holdsIndex(Self.first))
    try store.save(naming: [Self.first])
    let missed = try store.backend.missedChanges(of: Self.first)
    #expect(missed.isEmpty && !store.backend.holdsIndex(Self.first))
  }

  @Test func aSessionWithoutTheRepositoryKeepsAnIndexThatIsBehind() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    try store.save(naming: [Self.first])
    try store.open()
    try store.backend.close()
    try store.open()
    let missed = try store.backend.missedChanges(of: Self.first)
    #expect(missed.count == 1)
  }

  /// A slot for many changes of other collections would say that the index has all changes.
  @Test func manyChangesOfAnotherCollectionDropAnIndexThatIsBehind() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    try store.save(naming: [Self.first])
    try store.open()
    let commit = store.commit + 1
    let records = (0..<5_000).map {
      StoredRecord(collection: "tides", key: RecordKey("\($0)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    }
    try store.backend.commit(
      WriteBatch(records: records, commits: commit...commit, durability: .buffered, recordCounts: ["tides": 5_000]))
    try store.backend.flush()
    try store.open()
    let missed = try store.backend.missedChanges(of: Self.first)
    #expect(missed.isEmpty && !store.backend.holdsIndex(Self.first))
  }

  @Test func anIndexHasNoEditsOfAnotherThatWasNotCompleted() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    try store.backend.extendIndex(Self.second, by: Self.keys(0..<100), isFirst: true)
    let edit = IndexEdit(index: Self.second, removed: Self.keys(5..<6)[0], added: nil)
    try store.save([edit], naming: [Self.first, Self.second])
    try store.backend.flush()
    try store.open()
    try store.build(Self.second, Self.keys(0..<100))
    try store.open()
    let found = try store.keys(of: Self.second)
    #expect(found == Self.keys(0..<100))
  }

  /// A type may decode a record to another value than when its key was made, so the removed key is none of the run.
  @Test func aMissingKeyThatIsRemovedAndAddedIsNotLost() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    let key = Data("1".utf8)
    try store.save([IndexEdit(index: Self.first, removed: key, added: nil)], naming: [Self.first])
    try store.save([IndexEdit(index: Self.first, removed: nil, added: key)], naming: [Self.first])
    #expect(throws: RepositoryError.self) { try store.keys(of: Self.first) }
    // The edits are saved with the index.
    try store.backend.flush()
    try store.open()
    #expect(throws: RepositoryError.self) { try store.keys(of: Self.first) }
    let report = store.backend.verify()
    #expect(report.isSound && report.damagedIndexes.count == 1 && !store.backend.holdsIndex(Self.first))
  }

  @Test func anIndexThatIsBuiltDuringACheckpointIsKept() throws {
    let store = try Opened(journaled: 20)
    var work = try store.backend.beginCheckpoint()
    try store.build(Self.first, Self.keys(0..<1_000))
    // The store begins an index anew of which a checkpoint has dropped a part.
    try store.backend.extendIndex(Self.second, by: Self.keys(0..<1_000), isFirst: true)
    try store.save([IndexEdit(index: Self.first, removed: nil, added: Data("n".utf8))], naming: [Self.first, Self.second])
    while let part = work {
      part()
      work = try store.backend.continueCheckpoint()
    }
    let expected = Self.keys(0..<1_000) + [Data("n".utf8)]
    let found = try store.keys(of: Self.first)
    #expect(found == expected)
    let error = #expect(throws: RepositoryError.self) { try store.backend.extendIndex(Self.second, by: [Data("z".utf8)], isFirst: false) }
    #expect(error?.code == .unsupported)
    try store.backend.flush()
    try store.open()
    let reopened = try store.keys(of: Self.first)
    #expect(reopened == expected)
  }

  @Test func anIndexThatCatchesUpDuringACheckpointIsKept() throws {
    let store = try Opened(journaled: 20)
    try store.build(Self.first, Self.keys(0..<100))
    try store.save(naming: [Self.first])
    try store.open()
    var work = try store.backend.beginCheckpoint()
    try store.backend.catchUpIndex(Self.first, by: [IndexEdit(index: Self.first, removed: nil, added: Data("n".utf8))])
    while let part = work {
      part()
      work = try store.backend.continueCheckpoint()
    }
    let found = try store.keys(of: Self.first)
    #expect(found == Self.keys(0..<100) + [Data("n".utf8)])
  }

  @Test func anIndexAfterCommitsOfAnotherProcessIsKept() throws {
    let store = try Opened()
    try store.save(naming: [])
    try store.backend.suspend()
    let other = PagedJSONStore.backend(store.files)
    let commit = try other.openPagedAndRecover(PagedJSONStore.options).report.commit.number + 1
    let records = [PagedJSONStore.record("key 1003", nil, commit), PagedJSONStore.record("new", "{}", commit)]
    try other.commit(PagedJSONStore.batch(records, commit, count: 100))
    try other.suspend()
    let isUnread = try store.backend.resume()
    #expect(isUnread)
    try store.build(Self.first, Self.keys(0..<1_000))
    try store.backend.flush()
    try store.open()
    let found = try store.keys(of: Self.first)
    #expect(found == Self.keys(0..<1_000))
    // The count without the commits of the other process would be a guess.
    let opening = try PagedJSONStore.read(store.files.copy()).opening
    #expect(opening.collections.first?.recordCount == 100)
  }

  /// A store whose other collections are in memory.
  @Test func theIndexOfOneCollectionOnDiskIsKept() async throws {
    let files = SimulatedFileSystem()
    let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.rating)], residency: .onDisk(cache: .bytes(0)))
    let query = Query<Spot>().sorted(by: \.rating).limit(3)
    for launch in 0..<4 {
      let store = try await Store.open(
        PagedJSONStore.backend(files), options: StoreOptions(durability: .buffered, checkpoint: .manual))
      let spots = try await store.repository(schema)
      if launch == 0 {
        try await spots.save(contentsOf: (0..<500).map { Spot(id: $0, country: "JP", rating: $0 % 50) })
        try await store.checkpoint()
      }
      #expect(spots.isStored() == (launch > 0))
      try await spots.save(Spot(id: 600 + launch, country: "FR", rating: -launch))
      let found = try await spots.fetch(query).map(\.rating)
      #expect(found == Array(((0...launch).map { -$0 }.reversed() + [0, 0, 0]).prefix(3)))
      await store.core.indexBuilder.stored.awaitCopies()
      let wrong = try await spots.wrongStoredIndex()
      #expect(wrong == nil && spots.isStored())
      if launch == 1 { await store.core.abandon() } else { try await store.close() }
    }
  }

  /// If a sync of the keys fails, the index file is written without them.
  @Test func aFailedSyncOfManyKeysEndsNoCheckpoint() throws {
    let store = try Opened()
    let faulty = FaultyFileSystem(store.files)
    try store.open(faulty)
    try store.build(Self.first, Self.keys(0..<1_500, size: 2_000))
    try store.save(naming: [Self.first])
    faulty.script(.sync, "-index-tmp", Fault(EIO), skipping: 0)
    var work = try store.backend.beginCheckpoint()
    while let part = work {
      part()
      work = try store.backend.continueCheckpoint()
    }
    #expect(faulty.scriptedHits == 1 && !store.backend.holdsIndex(Self.first))
    let found = try store.backend.keepBase().values().count
    #expect(found == 100)
    store.backend.abandon()
    let opening = try PagedJSONStore.read(store.files).opening
    #expect(!opening.report.isIndexRebuilt)
  }

  // MARK: Space

  @Test(arguments: [false, true]) func aFullDiskTakesTheSpaceOfIndexes(afterAFailedSave isFailed: Bool) throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<5_000))
    try store.backend.flush()
    store.backend.abandon()
    let used = store.files.paths.reduce(0) { $0 + SmallDisk.blocks(store.files.contents(of: $1)?.count ?? 0) }
    try store.open(SmallDisk(store.files, directory: "/data", blocks: used + 30))
    if isFailed {
      try store.save(naming: [Self.first])
      store.files.fail(FaultPlan(.operation(store.files.operationCount + 2), code: .full))
      try store.backend.flush()
      store.files.fail()
    }
    var saved = 0
    while store.backend.holdsIndex(Self.first), saved < 100 {
      let value = PagedJSONStore.value(1, String(repeating: "y", count: 10_000))
      let record = PagedJSONStore.record("new \(saved)", value, store.commit + UInt64(saved) + 1)
      let commit = store.commit + UInt64(saved) + 1
      try store.backend.commit(
        WriteBatch(
          records: [record], commits: commit...commit, durability: .buffered, indexes: [Self.first],
          recordCounts: ["spots": 101 + saved]))
      saved += 1
    }
    #expect(saved > 3 && !store.backend.holdsIndex(Self.first))
    // No index takes the space again before the next checkpoint.
    let error = #expect(throws: RepositoryError.self) { try store.build(Self.first, Self.keys(0..<5_000)) }
    #expect(error?.code == .unsupported)
    store.backend.abandon()
    let values = try PagedJSONStore.read(store.files).values
    #expect(values.count == 100 + saved)
  }

  @Test func aFailedBuildKeepsTheOtherIndexes() throws {
    let store = try Opened()
    let keys = Self.keys(0..<3_000)
    try store.build(Self.first, keys)
    try store.backend.flush()
    try store.open()
    let size = store.indexSize
    store.files.fail(FaultPlan(.operation(store.files.operationCount + 1), code: .full, writtenBytes: 1_000))
    #expect(throws: RepositoryError.self) { try store.build(Self.second, Self.keys(0..<600, size: 2_000)) }
    store.files.fail()
    #expect(store.indexSize <= size + 1_000 && store.backend.holdsIndex(Self.first))
    let found = try store.keys(of: Self.first)
    #expect(found == keys)
  }

  @Test func aFullDiskWithoutAJournalTakesTheSpaceOfIndexes() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<5_000))
    try store.save(naming: [Self.first])
    try store.backend.checkpoint()
    try store.backend.close()
    try store.files.remove(PagedJSONStore.file.path + "-journal")
    let used = store.files.paths.reduce(0) { $0 + SmallDisk.blocks(store.files.contents(of: $1)?.count ?? 0) }
    try store.open(SmallDisk(store.files, directory: "/data", blocks: used + 2))
    #expect(store.backend.holdsIndex(Self.first))
    try store.save(naming: [Self.first])
    #expect(!store.backend.holdsIndex(Self.first))
  }

  @Test(arguments: [false, true]) func aBuildThatFillsTheDiskGivesTheSpaceBack(isSavedMeanwhile: Bool) throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<100))
    try store.backend.flush()
    store.backend.abandon()
    let used = store.files.paths.reduce(0) { $0 + SmallDisk.blocks(store.files.contents(of: $1)?.count ?? 0) }
    try store.open(SmallDisk(store.files, directory: "/data", blocks: used + 300))
    try store.save(naming: [Self.first])
    var count = 0
    let size = store.indexSize
    let error = #expect(throws: RepositoryError.self) {
      while true {
        try store.backend.extendIndex(Self.second, by: Self.keys(count..<(count + 40), size: 2_000), isFirst: count == 0)
        count += 40
        let added = Data("n\(count)".utf8)
        try store.save([IndexEdit(index: Self.first, removed: nil, added: added)], naming: [Self.first, Self.second])
        if isSavedMeanwhile { try store.backend.flush() }
      }
    }
    #expect(error?.code == .full && count > 40 && store.indexSize < size + 20_000)
    let found = try store.keys(of: Self.first)
    #expect(found.count == 100 + count / 40)
    try store.backend.flush()
    try store.open()
    let again = try store.keys(of: Self.first)
    #expect(again == found)
  }

  @Test func theIndexFileIsBounded() throws {
    let store = try Opened()
    var sizes: [Int] = []
    // Killed builds.
    for _ in 0..<5 {
      try store.open()
      sizes.append(store.indexSize)
      try store.backend.extendIndex(Self.first, by: Self.keys(0..<400, size: 2_000), isFirst: true)
    }
    #expect(Set(sizes.dropFirst()).count == 1)
    // Complete builds, each of which a commit drops.
    try store.open()
    var built = 0
    for _ in 0..<200 {
      do { try store.build(Self.first, Self.keys(0..<900, size: 2_000)) } catch let error as RepositoryError {
        #expect(error.code == .unsupported)
        break
      }
      built += 1
      try store.save(naming: [])
    }
    #expect((3..<200).contains(built) && store.indexSize < 20 << 20)
    try store.backend.flush()
    try store.open()
    #expect(store.indexSize == sizes.last)
  }

  @Test func anOldIndexFileIsClosedWithItsMainFile() throws {
    let store = try Opened()
    try store.build(Self.first, Self.keys(0..<1_000))
    try store.save(naming: [Self.first])
    let base = try store.backend.keepBase()
    store.files.fail(FaultPlan(.operation(store.files.operationCount + 2), code: .full))
    try store.backend.flush()
    store.files.fail()
    var later: [any StoredBase] = []
    for _ in 0..<12 {
      try store.save(naming: [])
      try store.backend.checkpoint()
      later.append(try store.backend.keepBase())
    }
    try store.save(naming: [])
    let error = #expect(throws: RepositoryError.self) { try base.indexKeys(of: Self.first, from: Data(), below: nil) }
    #expect(error?.code == .superseded)
  }

  // MARK: Damage

  private struct Spot: Codable, Identifiable, Sendable, Equatable {
    var id: Int
    var country: String
    var rating: Int
  }

  private static let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.country, \.rating), .ordered(\.rating)])

  private static func open(_ files: SimulatedFileSystem) async throws -> LocalRepository<Spot> {
    try await LocalRepository(backend: PagedJSONStore.backend(files), schema: schema, options: PagedJSONStore.options)
  }

  /// Flips, cuts and zeroes the parts of an index file, and compares the answers of queries.
  @Test func noDamageOfAnIndexChangesAnAnswer() async throws {
    let files = SimulatedFileSystem()
    let spots = try await Self.open(files)
    try await spots.save(contentsOf: (0..<600).map { Spot(id: $0, country: ["JP", "FR", "NO"][$0 % 3], rating: $0 % 100) })
    try await spots.checkpoint()
    let query = Query<Spot>().where(\.country, .equal, "JP").sorted(by: \.rating).limit(20)
    let range = Query<Spot>().where(\.rating, in: 20...29).sorted(by: \.rating)
    _ = (try await spots.fetch(query), try await spots.fetch(range))
    await spots.core.indexBuilder.stored.awaitCopies()
    for id in 0..<120 { try await spots.save(Spot(id: id, country: "JP", rating: 50 - id)) }
    try await spots.flush()
    try await spots.save(Spot(id: 7, country: "FR", rating: -900))
    let expected = (try await spots.fetch(query), try await spots.fetch(range))
    #expect(spots.isStored() && spots.isStored(1))
    let seed = try #require(Seeds.list(1, for: "noDamageOfAnIndexChangesAnAnswer").first)
    var random = SeededGenerator(seed)
    let bytes = try #require(files.contents(of: PagedJSONStore.index))
    var stored = 0
    for trial in 0..<Torture.count(120, full: 5_000) {
      var damaged = bytes
      let position = random.int(0..<bytes.count)
      switch trial % 4 {
      case 0, 1: damaged[position] ^= 1 << random.int(0..<8)
      case 2: damaged = bytes.prefix(position)
      default: for offset in position..<min(position + 4_096, bytes.count) { damaged[offset] = 0 }
      }
      let copy = files.copy()
      try copy.place(damaged, at: PagedJSONStore.index)
      let other = try await Self.open(copy)
      if other.isStored() { stored += 1 }
      let found = (try await other.fetch(query), try await other.fetch(range))
      #expect(found == expected, "LARDER_SEED=\(seed), trial \(trial), byte \(position)")
      try await other.save(Spot(id: 9_000, country: "JP", rating: -1_000))
      let first = try await other.fetch(query).first?.id
      #expect(first == 9_000, "LARDER_SEED=\(seed), trial \(trial), byte \(position)")
      try await other.close()
    }
    #expect(stored > 10)
    try await spots.close()
  }

  @Test func verifyDropsADamagedIndexAndTheNextQueryBuildsIt() async throws {
    let files = SimulatedFileSystem()
    var spots = try await Self.open(files)
    try await spots.save(contentsOf: (0..<500).map { Spot(id: $0, country: "JP", rating: $0 % 100) })
    let query = Query<Spot>().sorted(by: \.rating).limit(5)
    let expected = try await spots.fetch(query)
    await spots.core.indexBuilder.stored.awaitCopies()
    try await spots.checkpoint()
    try await spots.close()
    var bytes = try #require(files.contents(of: PagedJSONStore.index))
    let (_, slots) = try #require(bytes.withUnsafeBytes { IndexFileFormat.index(in: $0) })
    bytes[slots.end + 9] ^= 1
    try files.place(bytes, at: PagedJSONStore.index)
    spots = try await Self.open(files)
    #expect(spots.isStored(0) && spots.isStored(1))
    let report = await spots.core.verify()
    // Which of the two indexes comes first in the file differs between launches.
    #expect(report.isSound && report.damagedIndexes.count == 1 && spots.isStored(0) != spots.isStored(1))
    let found = try await spots.fetch(query)
    #expect(found == expected)
    _ = try await spots.fetch(Query<Spot>().where(\.country, .equal, "JP").sorted(by: \.rating).limit(5))
    await spots.core.indexBuilder.stored.awaitCopies()
    let wrong = try await spots.wrongStoredIndex()
    #expect(spots.isStored(0) && spots.isStored(1) && wrong == nil)
    try await spots.close()
  }

  @Test func noForgedNumberTraps() throws {
    for (number, sequence) in [(UInt32.max - 1, 5), (7, UInt64.max - 1), (1 << 31 - 1, UInt64.max / 2)] {
      let store = try Opened()
      try store.build(Self.first, Self.keys(0..<300))
      try store.backend.checkpoint()
      store.backend.abandon()
      var bytes = [UInt8](try #require(store.files.contents(of: PagedJSONStore.index)))
      let size = try #require(bytes.withUnsafeBytes { IndexFileFormat.indexSize(in: $0) })
      let (_, slots) = try #require(
        bytes.withUnsafeBytes { IndexFileFormat.index(in: UnsafeRawBufferPointer(rebasing: $0[..<size])) })
      for offset in (0..<IndexFileSlots.count).map({ slots.offset + $0 * slots.size }) {
        let slot = bytes[offset..<min(offset + slots.size, bytes.count)].withUnsafeBytes { slots.slot(in: $0) }
        guard let slot, slot.catalog != .none else { continue }
        var catalog = Array(bytes[slot.catalog.offset..<(slot.catalog.offset + slot.catalog.size)])
        withUnsafeBytes(of: number.littleEndian) { catalog.replaceSubrange(4..<8, with: $0) }
        let part = IndexFilePart(
          offset: bytes.count, size: catalog.count, checksum: catalog.withUnsafeBytes { CRC32C.checksum($0) })
        bytes += catalog
        let forged = IndexFileSlots.Slot(
          sequence: sequence, commit: slot.commit, journal: slot.journal, catalog: part, edits: .none, collections: slot.collections)
        let written = try #require(slots.bytes(forged))
        bytes.replaceSubrange(offset..<(offset + written.count), with: written)
      }
      try store.files.place(Data(bytes), at: PagedJSONStore.index)
      try store.open()
      try store.build(Self.second, Self.keys(0..<300))
      try store.backend.flush()
    }
  }

  @Test func aBlockOfForgedKeysTakesLittleMemory() throws {
    var bytes: [UInt8] = []
    bytes.append(number: UInt32(4_000))
    for number in 0..<4_000 {
      bytes.append(number: UInt16(number == 0 ? 0 : 30_000))
      bytes.append(number: UInt16(number == 0 ? 30_000 : 2))
      bytes += number == 0 ? [UInt8](repeating: 0, count: 30_000) : [UInt8(number >> 8), UInt8(number & 0xFF)]
    }
    var visited = 0
    let count = try bytes.withUnsafeBytes { bytes in try KeyRunFormat.forEachKey(in: bytes) { _ in visited += 1 } }
    #expect(count == nil && visited <= 256)
  }
}
