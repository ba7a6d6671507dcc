import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

/// A JSON store that has filled its disk can be cleared, and never loses what it has acknowledged by that.
@Suite(.timeLimit(.minutes(15)))
struct JSONFileFullDiskTests {
  private let file = URL(fileURLWithPath: "/data/cache.json")

  private func backend(_ files: any FileSystem) -> JSONFileBackend { JSONFileBackend(file: file, fileSystem: files) }

  private func batch(_ commit: UInt64, _ values: [(Int, String?)]) -> WriteBatch {
    let records = values.map { number, value in
      StoredRecord(
        collection: "entries", key: RecordKey("key \(number)"), revision: Revision(commit), schemaVersion: 1,
        value: value.map { Data("\"\($0)\"".utf8) })
    }
    return WriteBatch(records: records, commits: commit...commit)
  }

  private let value = String(repeating: "x", count: 3_000)

  /// Saves values until the disk is full; returns the newest commit.
  private func fill(_ backend: JSONFileBackend, from first: UInt64 = 1) throws -> UInt64 {
    for commit in first..<10_000 {
      do throws(RepositoryError) { try backend.commit(batch(commit, [(Int(commit), value)])) } catch {
        guard error.code == .full else { throw error }
        return commit - 1
      }
    }
    return 0
  }

  private func records(_ files: any FileSystem) throws -> (commit: UInt64, keys: Set<String>) {
    var keys: Set<String> = []
    let report = try backend(files).open(StoreOptions(access: .readOnly)) { if $0.value != nil { keys.insert("\($0.key)") } }
    return (report.commit.number, keys)
  }

  /// Full to the last block, or nearly; with a document beside the journal or without.
  @Test(arguments: [17, 18, 20, 33, 49], [false, true])
  func aStoreThatHasFilledTheDiskCanBeCleared(_ blocks: Int, _ isFolded: Bool) throws {
    // While a document is made, it and its journal are there twice.
    let blocks = isFolded ? blocks + 22 : blocks
    for limit in [0, 10_000] {
      let disk = SmallDisk(SimulatedFileSystem(), directory: "/data", blocks: blocks)
      let backend = backend(disk)
      _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: limit))) { _ in }
      var last: UInt64 = 0
      if isFolded {
        for commit in 1...5 { try backend.commit(batch(UInt64(commit), [(commit, value)])) }
        try backend.checkpoint()
        last = 5
      }
      last = try fill(backend, from: last + 1)
      #expect(last > 3)
      let deletions = batch(last + 1, (1...Int(last)).map { ($0, nil) })
      try backend.commitOnFullDisk(deletions)
      let free = try disk.free
      #expect(free > blocks - 5, "\(free) of \(blocks) are free")
      #expect(backend.verify().isSound)
      // It goes on.
      let again = try fill(backend, from: last + 2)
      #expect(again > last + 10)
      backend.abandon()
      let found = try records(disk)
      #expect(found.commit == again && found.keys.count == Int(again - last - 1))
    }
  }

  /// The deletions are an ordinary commit there: nobody has found the disk full yet.
  @Test(arguments: [false, true]) func aStoreThatWasClearedAfterOpeningGivesTheSpaceBack(_ isFolded: Bool) throws {
    let disk = SmallDisk(SimulatedFileSystem(), directory: "/data", blocks: isFolded ? 71 : 49)
    var backend = backend(disk)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: 0))) { _ in }
    var last: UInt64 = 0
    if isFolded {
      for commit in 1...5 { try backend.commit(batch(UInt64(commit), [(commit, value)])) }
      try backend.checkpoint()
      last = 5
    }
    last = try fill(backend, from: last + 1)
    backend.abandon()
    backend = self.backend(disk)
    _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: 0))) { _ in }
    try backend.commit(batch(last + 1, (1...Int(last)).map { ($0, nil) }))
    let again = try fill(backend, from: last + 2)
    #expect(again > last + 10, "\(again - last - 1) values after \(last)")
    #expect(backend.verify().isSound)
    backend.abandon()
    let found = try records(disk)
    #expect(found.commit == again && found.keys.count == Int(again - last - 1))
  }

  @Test func tombstonesThatHaveNoRoomAreForgotten() throws {
    let disk = SmallDisk(SimulatedFileSystem(), directory: "/data", blocks: 65)
    let backend = backend(disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    var last: UInt64 = 0
    // Some thousand small records, whose tombstones are larger than what the journal keeps for deletions.
    while true {
      let first = Int(last) * 100
      do { try backend.commit(batch(last + 1, (first..<first + 100).map { ($0, "1") })) } catch { break }
      last += 1
    }
    #expect(last > 15)
    try backend.commitOnFullDisk(batch(last + 1, (0..<Int(last) * 100).map { ($0, nil) }))
    try backend.commit(batch(last + 2, [(1, value)]))
    #expect(backend.verify().isSound)
    backend.abandon()
    let report = try self.backend(disk).open(StoreOptions(access: .readOnly)) { _ in }
    #expect(report.commit == Revision(last + 2) && report.tombstoneHorizon == Revision(last + 1))
  }

  @Test func deletingLittleOfMuchNeedsNoRoomForTheRest() throws {
    let disk = SmallDisk(SimulatedFileSystem(), directory: "/data", blocks: 60)
    let backend = backend(disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    let last = try fill(backend)
    for offset in 1...5 { try backend.commitOnFullDisk(batch(last + UInt64(offset), [(offset, nil)])) }
    #expect(backend.verify().isSound)
    backend.abandon()
    let found = try records(disk)
    #expect(found.commit == last + 5 && found.keys.count == Int(last) - 5)
  }

  /// Whatever fails on the way, the next snapshot goes with the journal that is left beside it.
  @Test func aFailureOnTheWayLeavesAStoreThatOpens() throws {
    var hits = 0
    for operation in 1...16 {
      let files = SimulatedFileSystem()
      let first = backend(files)
      _ = try first.openAndRecover(StoreOptions()) { _ in }
      try first.commit(batch(1, [(1, value), (2, value), (3, value)]))
      try first.close()
      let second = backend(files)
      _ = try second.openAndRecover(StoreOptions()) { _ in }
      var commit: UInt64 = 1
      let before = files.operationCount
      files.fail(FaultPlan(.operation(before + operation), code: .full))
      for number in 1...3 {
        let deletion = batch(commit + 1, [(number, nil)])
        do throws(RepositoryError) {
          do throws(RepositoryError) { try second.commit(deletion) } catch { try second.commitOnFullDisk(deletion) }
          commit += 1
        } catch {}
        if files.operationCount >= before + operation { hits += 1 }
        files.fail()
      }
      second.abandon()
      for image in files.crashImages(.powerLoss) {
        let found = try records(image.fileSystem)
        #expect(found.commit >= commit && found.keys.count == 3 - Int(found.commit - 1), "operation \(operation)")
      }
      #expect(try records(files).commit >= commit, "operation \(operation)")
    }
    #expect(hits > 0)
  }

  /// A file system in which no name becomes durable after `stop`.
  private final class NamesNotSynced: ForwardingFileSystem {
    let base: any FileSystem
    let isStopped = Atomic(false)
    init(base: any FileSystem) { self.base = base }
    func syncDirectory(_ path: String) throws(RepositoryError) {
      if isStopped.load(ordering: .relaxed) { throw RepositoryError(.inputOutput, file: path) }
      try base.syncDirectory(path)
    }
  }

  /// The space is given back for a value once, also where that does not succeed whole and could be tried for ever.
  @Test func aValueThatHasNoRoomIsRefusedWhereNamesAreNotSyncedEither() throws {
    let disk = NamesNotSynced(base: SmallDisk(SimulatedFileSystem(), directory: "/data", blocks: 100))
    let backend = backend(disk)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    for commit in 1...60 { try backend.commit(batch(UInt64(commit), [(1, value)])) }
    disk.isStopped.store(true, ordering: .relaxed)
    let large = batch(61, [(2, String(repeating: "y", count: 300_000))])
    let failure = #expect(throws: RepositoryError.self) { try backend.commit(large) }
    #expect(failure?.code == .full)
    disk.isStopped.store(false, ordering: .relaxed)
    try backend.commit(batch(61, [(1, "small")]))
    try backend.close()
    #expect(try records(disk).commit == 61)
  }

  private struct Entry: Codable, Identifiable, Sendable {
    let id: Int
    let text: String
  }

  @Test func onlyTheFirstOfManyDeletionsTriesToMakeTheFilesSmaller() async throws {
    let files = SimulatedFileSystem()
    let repository = try await LocalRepository<Entry>(
      backend: backend(SmallDisk(files, directory: "/data", blocks: 60)), schema: .init("entries"), options: .init(checkpoint: .manual))
    var count = 0
    var failure: RepositoryError.Code?
    while failure == nil, count < 1_000 {
      let entry = Entry(id: count, text: value)
      failure = await code { try await repository.save(entry) }
      if failure == nil { count += 1 }
    }
    #expect(failure == .full)
    #expect(count >= 10)
    try await repository.delete(0)
    let before = files.operationCount
    for id in 1...8 { try await repository.delete(id) }
    // Each is written and synced, and the journal grows now and then.
    #expect(files.operationCount - before <= 24)
    #expect(try await repository.count() == count - 9)
    // There is no room for the document; everything is in the journal.
    #expect(await code { try await repository.close() } == .full)
  }

  /// Where the deletions have room in the journal, and where they have none.
  @Test(arguments: [10, 1_600]) func aCrashInTheMiddleOfClearingLeavesAllOrNothing(_ keyLength: Int) throws {
    struct Broken: Error { let text: String }
    func batch(_ commit: UInt64, _ numbers: ClosedRange<Int>, _ value: String?) -> WriteBatch {
      let records = numbers.map { number in
        StoredRecord(
          collection: "entries", key: RecordKey(String(repeating: "k", count: keyLength) + "\(number)"), revision: Revision(commit),
          schemaVersion: 1, value: value.map { Data("\"\($0)\"".utf8) })
      }
      return WriteBatch(records: records, commits: commit...commit)
    }
    let file = file
    let result = try CrashExplorer(seed: 1, imagesPerPoint: 50).explore { files, acknowledge in
      // The document, and one piece of the journal.
      let disk = SmallDisk(files, directory: "/data", blocks: 5)
      let backend = JSONFileBackend(file: file, fileSystem: disk, tuning: .init(journalChunk: 16_384))
      _ = try backend.openAndRecover(StoreOptions(limits: .init(tombstones: 0))) { _ in }
      for commit in 1...3 {
        try backend.commit(batch(UInt64(commit), commit...commit, String(repeating: "y", count: 2_200)))
        acknowledge(commit)
      }
      try backend.commitOnFullDisk(batch(4, 1...3, nil))
      acknowledge(4)
      guard try disk.free == 4 else { throw Broken(text: "\(try disk.free) blocks are free") }
      backend.abandon()
    } check: { image, acknowledged in
      let backend = JSONFileBackend(file: file, fileSystem: image.fileSystem)
      var count = 0
      let report = try backend.openAndRecover(StoreOptions()) { if $0.value != nil { count += 1 } }
      let (commit, least) = (Int(report.commit.number), acknowledged.max() ?? 0)
      guard commit >= least else { throw Broken(text: "commit \(commit) after \(least)") }
      guard count == (commit == 4 ? 0 : commit) else { throw Broken(text: "\(count) records at commit \(commit)") }
      backend.abandon()
    }
    #expect(result.images > 0)
  }
}
