import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// The reads of records that stay in a JSON document, old documents, and the counts that openings find.
@Suite("JSON: reading records in the files", .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct JSONFileBaseTests {
  // MARK: Reading

  @Test func everyBlockOfAWalkIsWhatBruteForceGives() throws {
    let fixture = try PagedJSONStore(500, journaled: 60)
    let backend = PagedJSONStore.backend(fixture.files)
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    let base = try backend.keepBase()
    let sorted = fixture.model.keys.map { RecordKey($0) }.sorted()
    let keys = sorted + ["", "key", "key 1234x", "l", "gone"].map { RecordKey($0) }
    for key in keys + [nil] {
      for limit in [1, 2, 63, 1_000] {
        let found = try base.records(of: "spots", after: key, limit: limit)
        let rest = sorted.drop { candidate in key.map { !($0 < candidate) } ?? false }.prefix(limit)
        #expect(found.map(\.key) == Array(rest), "after \(key?.text ?? "nothing"), \(limit)")
        #expect(found.allSatisfy { $0.value.map { String(decoding: $0, as: UTF8.self) } == fixture.model[$0.key.text] })
      }
    }
    let found = try base.records(keys, of: "spots")
    #expect(found.map { $0?.value.map { String(decoding: $0, as: UTF8.self) } } == keys.map { fixture.model[$0.text] })
    #expect(try base.records(keys, of: "none").allSatisfy { $0 == nil })
    #expect(try base.records(of: "none", after: nil, limit: 9).isEmpty)
    backend.abandon()
  }

  @Test func aLongAnswerEndsAfterAMebibyte() throws {
    let backend = PagedJSONStore.backend(SimulatedFileSystem())
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    let large = String(repeating: "x", count: 400_000)
    let records = (0..<8).map { PagedJSONStore.record("\($0)", "\"\(large)\"", 1) }
    try backend.commit(PagedJSONStore.batch(records, 1, count: 8))
    for _ in 0..<2 {
      let base = try backend.keepBase()
      #expect(try base.records(of: "spots", after: nil, limit: 100).count == 2)
      #expect(try base.values().count == 8)
      try backend.checkpoint()
    }
    backend.abandon()
  }

  /// Snapshots keep old documents open, so there is a bound, and a base beyond it never reads another commit.
  @Test func oldDocumentsAreClosedWhenThereAreMany() throws {
    let fixture = try PagedJSONStore(20, journaled: 0)
    let backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    var bases: [any StoredBase] = []
    for number in 0..<12 {
      bases.append(try backend.keepBase())
      commit += 1
      try backend.commit(PagedJSONStore.batch([PagedJSONStore.record("newest", "\(number)", commit)], commit, count: 21))
      try backend.checkpoint()
      #expect(backend.wantsNewerBase)
    }
    bases.append(try backend.keepBase())
    #expect(!backend.wantsNewerBase)
    for (number, base) in bases.enumerated() {
      if number < 4 {
        #expect(#expect(throws: RepositoryError.self) { try base.values() }?.code == .superseded)
      } else {
        #expect(try base.values()["newest"] == "\(number - 1)")
      }
    }
    try backend.close()
    #expect(try bases.last?.values()["newest"] == "11")
  }

  /// The store reads the document that a checkpoint has replaced until the checkpoint ends, and for longer if it fails.
  enum Ending: CaseIterable { case success, failure, poison }

  @Test(arguments: Ending.allCases) func theStoreReadsADocumentThatIsReplaced(_ ending: Ending) async throws {
    struct Note: Codable, Identifiable, Sendable, Equatable {
      var id: String
      var text: String
    }
    let directory = try TemporaryDirectory()
    let files = JournalRefusing(POSIXFileSystem())
    let notes = try await LocalRepository<Note>(
      backend: JSONFileBackend(file: directory.file("notes.json"), fileSystem: files), schema: .init("notes"),
      options: PagedJSONStore.options)
    // The document shrinks so much that its space is more than snapshots may keep.
    let text = String(repeating: "x", count: 100_000)
    try await notes.save(contentsOf: (0..<200).map { Note(id: "\(1_000 + $0)", text: text) })
    try await notes.checkpoint()
    try await notes.delete(where: Query().where(\.id, .less, "1190"))
    files.error.withLock { $0 = ending == .success ? nil : RepositoryError(ending == .poison ? .outcomeUnknown : .inputOutput) }
    let checkpoint = await code { try await notes.checkpoint() }
    #expect((checkpoint == nil) == (ending == .success))
    for _ in 0..<2 {
      #expect(try await notes.find(by: "1195")?.text == text)
      #expect(try await notes.loadAll().count == 10)
      #expect(await code { try await notes.save(Note(id: "new", text: "")) } == (ending == .poison ? .poisoned : nil))
      if ending != .poison { try await notes.delete("new") }
    }
    files.error.withLock { $0 = nil }
    do { try await notes.close() } catch { #expect(ending == .poison) }
  }

  /// A file system that refuses to create journals with an error.
  private final class JournalRefusing: ForwardingFileSystem {
    let base: any FileSystem
    let error = Mutex<RepositoryError?>(nil)
    /// True if the error is over after one call.
    let isOver = Mutex(false)

    init(_ base: any FileSystem) { self.base = base }

    func create(_ path: String) throws(RepositoryError) -> any OpenFile {
      if path.hasSuffix("-journal-tmp"), let failure = error.withLock({ $0 }) {
        if isOver.withLock({ $0 }) { error.withLock { $0 = nil } }
        throw failure
      }
      return try base.create(path)
    }
  }

  /// A snapshot keeps a document of 20 MB, and the document shrinks.
  @Test func aCommitClosesALargeOldDocumentThatOnlySnapshotsRead() throws {
    let backend = PagedJSONStore.backend(SimulatedFileSystem())
    _ = try backend.openPagedAndRecover(PagedJSONStore.options)
    let large = (0..<2).map { PagedJSONStore.record("\($0)", "\"" + String(repeating: "x", count: 10_000_000) + "\"", 1) }
    try backend.commit(PagedJSONStore.batch(large, 1, count: 2))
    try backend.checkpoint()
    let old = try backend.keepBase()
    try backend.commit(PagedJSONStore.batch(large.map { PagedJSONStore.record($0.key.text, "1", 2) }, 2, count: 2))
    try backend.checkpoint()
    // The store has taken no newer base, so it still reads the old document, also beside commits.
    try backend.commit(PagedJSONStore.batch([PagedJSONStore.record("2", "1", 3)], 3, count: 3))
    #expect(try old.values()["0"]?.utf8.count == 10_000_002)
    _ = try backend.keepBase()
    try backend.commit(PagedJSONStore.batch([PagedJSONStore.record("3", "1", 4)], 4, count: 4))
    #expect(#expect(throws: RepositoryError.self) { try old.values() }?.code == .superseded)
    #expect(try backend.keepBase().values().count == 4)
    backend.abandon()
  }

  /// After deletions on a full disk there is no journal, and the next one needs the space of the document that a snapshot reads.
  @Test func aJournalThatHasNoRoomGetsTheSpaceOfOldDocuments() throws {
    let fixture = try PagedJSONStore(20, journaled: 0)
    let files = JournalRefusing(fixture.files)
    let backend = PagedJSONStore.backend(files)
    let commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    let old = try backend.keepBase()
    let gone = fixture.model.keys.map { PagedJSONStore.record($0, nil, commit + 1) }
    try backend.commitOnFullDisk(PagedJSONStore.batch(gone, commit + 1, count: 0))
    _ = try backend.keepBase()
    #expect(try old.values() == fixture.model)
    files.error.withLock { $0 = RepositoryError(.full) }
    files.isOver.withLock { $0 = true }
    let record = PagedJSONStore.record("new", "1", commit + 2)
    try backend.commit(PagedJSONStore.batch([record], commit + 2, count: 1))
    #expect(#expect(throws: RepositoryError.self) { try old.values() }?.code == .superseded)
    #expect(try backend.keepBase().values() == ["new": "1"])
    backend.abandon()
  }

  /// Without a newer base, the disk would hold two documents until the next commit.
  @Test func aCheckpointEndsWithANewerBase() async throws {
    struct Note: Codable, Identifiable, Sendable { var id: String }
    let backend = PagedJSONStore.backend(SimulatedFileSystem())
    let notes = try await LocalRepository(backend: backend, schema: RepositorySchema<Note>("notes"), options: PagedJSONStore.options)
    try await notes.save(Note(id: "a"))
    try await notes.checkpoint()
    #expect(!backend.wantsNewerBase)
    try await notes.close()
  }

  /// On a full disk, the space of documents that only snapshots read is needed.
  @Test func aFullDiskClosesOldDocuments() throws {
    let fixture = try PagedJSONStore()
    let backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    func change(_ body: (WriteBatch) throws -> Void, _ value: String?) throws {
      commit += 1
      try body(PagedJSONStore.batch([PagedJSONStore.record("key 1001", value, commit)], commit, count: nil))
    }
    let first = try backend.keepBase()
    try change({ try backend.commit($0) }, "1")
    try backend.checkpoint()
    let second = try backend.keepBase()
    #expect(try first.values() == fixture.model)
    try change({ try backend.commitOnFullDisk($0) }, nil)
    #expect(#expect(throws: RepositoryError.self) { try first.values() }?.code == .superseded)
    // The store reads the base that it was given last until it takes another one.
    #expect(try second.values()["key 1001"] == "1")
    #expect(try backend.keepBase().values()["key 1001"] == nil)
    backend.abandon()
  }

  @Test func theJournalOfAStoreOnDiskIsBounded() throws {
    let tuning = JSONFileBackend.Tuning(pagedJournal: 2_048)
    for isPaged in [true, false] {
      let backend = PagedJSONStore.backend(SimulatedFileSystem(), tuning)
      if isPaged { _ = try backend.openPagedAndRecover(PagedJSONStore.options) } else { _ = try backend.openAndRecover(.init()) { _ in } }
      #expect(!backend.wantsCheckpoint)
      let records = (0..<20).map { PagedJSONStore.record("\($0)", PagedJSONStore.value($0, ""), 1) }
      try backend.commit(PagedJSONStore.batch(records, 1, count: 20))
      #expect(backend.wantsCheckpoint == isPaged)
      backend.abandon()
    }
  }

  /// The draft of a checkpoint that begins before the first base has no index.
  @Test func aCheckpointThatBeganBeforeTheFirstBaseLeavesNoOldDocument() throws {
    let fixture = try PagedJSONStore()
    let backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openAndRecover(StoreOptions()) { _ in }.commit.number
    let work = try backend.beginCheckpoint()
    #expect(try backend.keepBase().values() == fixture.model)
    work?()
    while let next = try backend.continueCheckpoint() { next() }
    #expect(backend.wantsNewerBase)
    commit += 1
    try backend.commit(PagedJSONStore.batch([PagedJSONStore.record("key 1003", "1", commit)], commit, count: nil))
    var model = fixture.model
    model["key 1003"] = "1"
    #expect(try backend.keepBase().values() == model)
    try backend.close()
    let (opening, values) = try PagedJSONStore.read(fixture.files)
    #expect(!opening.report.isIndexRebuilt && values == model)
  }

  /// A walk asks for few records at a time, and the tree of the changes has many tombstones between them.
  @Test func aWalkBesideManyTombstonesFindsEveryRecord() throws {
    let fixture = try PagedJSONStore(2_000, journaled: 0)
    let backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number + 1
    let kept = Set(stride(from: 1_000, to: 3_000, by: 190).map { "key \($0)" })
    let gone = fixture.model.keys.filter { !kept.contains($0) }
    try backend.commit(PagedJSONStore.batch(gone.map { PagedJSONStore.record($0, nil, commit) }, commit, count: kept.count))
    commit += 1
    try backend.commit(PagedJSONStore.batch([PagedJSONStore.record("key 2999x", "1", commit)], commit, count: kept.count + 1))
    for limit in [1, 3, 1_000] {
      var found: [String] = []
      let base = try backend.keepBase()
      while case let part = try base.records(of: "spots", after: found.last.map { RecordKey($0) }, limit: limit), !part.isEmpty {
        found += part.map(\.key.text)
      }
      #expect(found == (kept.sorted() + ["key 2999x"]), "limit \(limit)")
    }
    backend.abandon()
  }

  // MARK: The counts

  /// Opens after kills and power cuts, and beside stores with their records in memory, whose commits say no counts.
  @Test func everyOpeningCountsTheRecordsThatAWalkFinds() throws {
    for seed in Seeds.list(Torture.count(20, full: 1_000), for: "everyOpeningCountsTheRecordsThatAWalkFinds") {
      var random = SeededGenerator(seed)
      var files = SimulatedFileSystem()
      let tuning = JSONFileBackend.Tuning(journalChunk: 512, smallFile: random.chance(50) ? 0 : 1 << 20, pagedJournal: 20_000)
      for round in 0..<12 {
        let isPaged = random.chance(70)
        let backend = PagedJSONStore.backend(files, tuning)
        var model: Set<String>
        var commit: UInt64
        if isPaged {
          let opening = try backend.openPagedAndRecover(PagedJSONStore.options)
          model = Set(try backend.keepBase().values().keys)
          commit = opening.report.commit.number
          let told = opening.collections.first?.recordCount ?? 0
          #expect(told == model.count, "round \(round), replay with LARDER_SEED=\(seed)")
          guard told == model.count else { return }
        } else {
          var keys: Set<String> = []
          commit = try backend.openAndRecover(StoreOptions()) { if $0.value != nil { keys.insert($0.key.text) } }.commit.number
          model = keys
        }
        for _ in 0..<random.int(0..<8) {
          commit += 1
          var records: [StoredRecord] = []
          for _ in 0..<random.int(1..<(random.chance(20) ? 300 : 8)) {
            let key = "key \(random.int(0..<400))"
            let isDeletion = random.chance(30)
            records.append(PagedJSONStore.record(key, isDeletion ? nil : "\"\(commit)\"", commit))
            if isDeletion { model.remove(key) } else { model.insert(key) }
          }
          try backend.commit(PagedJSONStore.batch(records, commit, count: isPaged && random.chance(97) ? model.count : nil))
          switch random.int(0..<8) {
          case 0: try backend.flush()
          case 1: try backend.checkpoint()
          case 2:
            if let work = try backend.beginCheckpoint() {
              work()
              while let next = try backend.continueCheckpoint() { next() }
            }
          case 3: if isPaged { _ = try backend.keepBase() }
          default: break
          }
        }
        switch random.int(0..<4) {
        case 0: try backend.close()
        case 1: backend.abandon()
        default:
          // A power cut loses unsynced bytes, and other ones in each file.
          let images = files.crashImages(limit: 8, seed: random.next())
          backend.abandon()
          files = images[random.int(0..<images.count)].fileSystem
        }
      }
    }
  }

  /// A power cut loses commits whose counts are in the index file, and later commits get their numbers.
  ///
  /// - Parameter isResident: True if a store with its records in memory makes the later commits.
  @Test(arguments: [["a", "b"], ["b"], ["key 1001"]], [false, true])
  func theCountsOfLostCommitsDoNotReturn(_ later: [String], _ isResident: Bool) throws {
    let fixture = try PagedJSONStore(100, journaled: 3)
    let (journal, count) = (PagedJSONStore.file.path + "-journal", fixture.model.count)
    let synced = try #require(fixture.files.contents(of: journal))
    var backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    // So many records that the counts are written with the commit.
    let settings = (0..<300).map { PagedJSONStore.record("setting \($0)", "0", commit + 2) }
    func commitBoth(_ first: [String], adding number: Int, isCounted: Bool) throws {
      let records = first.map { PagedJSONStore.record($0, "1", commit + 1) }
      try backend.commit(PagedJSONStore.batch(records, commit + 1, count: isCounted ? count + number : nil))
      try backend.commit(PagedJSONStore.batch(settings, commit + 2, count: isCounted ? count + number + 300 : nil))
    }
    // The frames of the lost commits are as long as later ones.
    try commitBoth([later == ["key 1001"] ? "key 9001" : "a"], adding: 1, isCounted: true)
    backend.abandon()
    try fixture.files.place(synced, at: journal)
    backend = PagedJSONStore.backend(fixture.files)
    commit =
      try isResident
      ? backend.openAndRecover(StoreOptions()) { _ in }.commit.number
      : backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    let added = later == ["key 1001"] ? 0 : later.count
    try commitBoth(later, adding: added, isCounted: !isResident)
    backend.abandon()
    let (opening, values) = try PagedJSONStore.read(fixture.files)
    #expect(values.count == count + added + 300 && opening.collections.map(\.recordCount) == [values.count])
  }

  /// The records that a store in memory has changed are counted by one opening, and not by each.
  @Test func anOpeningWritesTheCountsThatItHasMade() throws {
    let fixture = try PagedJSONStore(400, journaled: 0)
    let backend = PagedJSONStore.backend(fixture.files)
    let commit = try backend.openAndRecover(StoreOptions()) { _ in }.commit.number + 1
    let changes = (0..<150).map { PagedJSONStore.record("key \(1_000 + 2 * $0)", "1", commit) }
    try backend.commit(PagedJSONStore.batch(changes, commit, count: nil))
    try backend.close()
    var reads: [Int] = []
    for _ in 0..<2 {
      let files = ReadCounting(fixture.files)
      let backend = PagedJSONStore.backend(files)
      #expect(try backend.openPagedAndRecover(PagedJSONStore.options).collections.map(\.recordCount) == [400])
      reads.append(files.documentBytes)
      backend.abandon()
    }
    #expect(reads[1] < 20_000 && reads[0] > reads[1] + 20_000, "\(reads)")
  }

  /// The counts that the engine says with its commits spare the opening after a kill the look-ups.
  @Test func anOpeningAfterAKillLooksUpFewRecords() async throws {
    struct Note: Codable, Identifiable, Sendable {
      var id: Int
      var text: String
    }
    let files = SimulatedFileSystem()
    let notes = try await LocalRepository(
      backend: PagedJSONStore.backend(files), schema: RepositorySchema<Note>("notes"), options: PagedJSONStore.options)
    let text = String(repeating: "x", count: 300)
    try await notes.save(contentsOf: (0..<1_000).map { Note(id: $0, text: text) })
    try await notes.checkpoint()
    for start in stride(from: 0, to: 1_000, by: 100) {
      try await notes.save(contentsOf: stride(from: start, to: start + 100, by: 3).map { Note(id: $0, text: "") })
    }
    let left = files.copy()
    try await notes.close()
    let counting = ReadCounting(left)
    let backend = PagedJSONStore.backend(counting)
    #expect(try backend.openPagedAndRecover(PagedJSONStore.options).collections.map(\.recordCount) == [1_000])
    #expect(counting.documentBytes < 150_000, "\(counting.documentBytes)")
    backend.abandon()
  }

  /// The frames of commits beside a checkpoint are carried to a new journal, for which the counts are written again.
  @Test func theCountsFollowTheJournalOfACheckpoint() throws {
    let fixture = try PagedJSONStore(400, journaled: 0)
    let backend = PagedJSONStore.backend(fixture.files)
    var commit = try backend.openPagedAndRecover(PagedJSONStore.options).report.commit.number
    func change(_ keys: StrideTo<Int>) throws {
      commit += 1
      try backend.commit(PagedJSONStore.batch(keys.map { PagedJSONStore.record("key \(1_000 + $0)", "1", commit) }, commit, count: 400))
    }
    try change(stride(from: 0, to: 400, by: 5))
    let work = try backend.beginCheckpoint()
    try change(stride(from: 1, to: 400, by: 2))
    // The counts are written for the journal that the checkpoint replaces.
    try backend.flush()
    work?()
    while let next = try backend.continueCheckpoint() { next() }
    try backend.close()
    let files = ReadCounting(fixture.files)
    let again = PagedJSONStore.backend(files)
    #expect(try again.openPagedAndRecover(PagedJSONStore.options).collections.map(\.recordCount) == [400])
    #expect(files.documentBytes < 20_000)
    again.abandon()
  }

  @Test func anIndexFileSurvivesAPowerCut() throws {
    let fixture = try PagedJSONStore()
    for image in fixture.files.crashImages(limit: 6, seed: 1) {
      let (opening, values) = try PagedJSONStore.read(image.fileSystem)
      #expect(!opening.report.isIndexRebuilt && values == fixture.model, "\(image.summary)")
    }
  }

  @Test func aStoreInMemoryCanLeaveACollectionInTheDocument() async throws {
    let fixture = try PagedJSONStore()
    struct Note: Codable, Identifiable, Sendable, Equatable { var id: String }
    let options = StoreOptions(checkpoint: .manual)
    for isFirst in [true, false] {
      let store = try await Store.open(PagedJSONStore.backend(fixture.files), options: options)
      #expect(store.openReport.residency == .full)
      let notes = try await store.repository(RepositorySchema<Note>("notes", residency: .onDisk(cache: .bytes(0))))
      #expect(notes.snapshot.records.isPaged)
      if isFirst { try await notes.save(contentsOf: (0..<100).map { Note(id: "\($0)") }) }
      try await store.checkpoint()
      try await notes.save(Note(id: "50"))
      #expect(try await notes.loadAll().count == 100)
      try await store.close()
    }
    #expect(try PagedJSONStore.read(fixture.files).opening.collections.map(\.recordCount).sorted() == [100, fixture.model.count].sorted())
  }
}
