import Foundation
import Larder
import LarderTesting
import Testing

/// A device that was locked refuses calls on protected files with EPERM, as a directory of another user does with EACCES.
///
/// Afterwards the store goes on.
@Suite("A JSON store on a locked device", .timeLimit(.minutes(15))) struct LockedDeviceTests {
  private let file = URL(fileURLWithPath: "/data/spots.json")

  private func batch(_ commit: UInt64, _ key: String, bytes: Int = 10) -> WriteBatch {
    let value = Data(#""\#(String(repeating: "v", count: bytes))""#.utf8)
    let record = StoredRecord(collection: "spots", key: RecordKey(key), revision: Revision(commit), schemaVersion: 1, value: value)
    return WriteBatch(records: [record], commits: commit...commit)
  }

  private func keys(_ files: SimulatedFileSystem) throws -> (commit: UInt64, keys: Set<String>, isClean: Bool) {
    var keys: Set<String> = []
    let backend = JSONFileBackend(file: file, fileSystem: files)
    let report = try backend.openAndRecover(StoreOptions()) { keys.insert($0.key.text) }
    #expect(backend.verify().problems.isEmpty)
    backend.abandon()
    return (report.commit.number, keys, report.cutTail == nil)
  }

  enum Call: CaseIterable { case commit, largeCommit, checkpoint, background }

  /// Fails every call from the n-th on, of one kind of work, until the work meets no failure.
  @Test(arguments: [EPERM, EACCES], Call.allCases)
  func refusedCallsLoseNothingAndTheNextWriteGoesOn(_ number: Int32, _ call: Call) throws {
    var (refused, unknown) = (0, 0)
    for step in 1...200 {
      // Half of a frame, or nothing of it.
      for written in [0, 60] {
        let files = SimulatedFileSystem()
        let backend = JSONFileBackend(file: file, fileSystem: files)
        _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
        try backend.commit(batch(1, "first"))
        refuse(files, from: step, number, leaving: written)
        var last: UInt64 = 1
        let error = refusal {
          switch call {
          case .commit: try backend.commit(batch(2, "second"))
          case .largeCommit: try backend.commit(batch(2, "second", bytes: 2 << 20))
          case .checkpoint: try backend.checkpoint()
          case .background:
            var work = try backend.beginCheckpoint()
            while let next = work {
              next()
              work = try backend.continueCheckpoint()
            }
          }
          if call == .commit || call == .largeCommit { last = 2 }
        }
        files.fail()
        guard let error else {
          #expect(step > 1 && refused > 0)
          backend.abandon()
          return
        }
        // A sync that failed is no refusal: what it should have covered may be lost.
        guard error.code != .outcomeUnknown else {
          unknown += 1
          #expect(isOfSync(error), "\(error)")
          backend.abandon()
          continue
        }
        refused += 1
        #expect(error.code == .protectedDataUnavailable, "\(error)")
        // Killed while the device is locked: nothing of the write is there.
        #expect(try keys(files.copy()).commit == last)
        #expect(backend.verify().problems.isEmpty)
        try backend.commit(batch(last + 1, "again"))
        try backend.checkpoint()
        try backend.commit(batch(last + 2, "and again"))
        for image in files.crashImages(limit: 20) {
          let found = try keys(image.fileSystem)
          #expect(found.commit == last + 2 && found.isClean && found.keys.isSuperset(of: ["first", "again", "and again"]))
        }
        try backend.close()
        #expect(try keys(files).commit == last + 2)
      }
    }
    Issue.record("the work never ended without a failure; \(refused) refused, \(unknown) unknown")
  }

  /// Refuses all calls that change something, the n-th and those after it; the n-th leaves some bytes if it is a write.
  private func refuse(_ files: SimulatedFileSystem, from step: Int, _ number: Int32, leaving count: Int) {
    let first = files.operationCount + step
    files.fail(
      FaultPlan(.operation(first), errorNumber: number, writtenBytes: count),
      FaultPlan(.operation(first + 1), errorNumber: number, isPermanent: true))
  }

  private func refusal(_ body: () throws -> Void) -> RepositoryError? {
    do { try body() } catch let error as RepositoryError { return error } catch { Issue.record("\(error)") }
    return nil
  }

  private func isOfSync(_ error: RepositoryError) -> Bool {
    var cause: (any Error)? = error
    while let found = cause as? RepositoryError { cause = found.underlying }
    return (cause as? SystemCallError)?.call == "fsync"
  }

  /// What a refused write has left is taken back before a close, so that the next opening finds no torn end.
  @Test func aCloseAfterTheDeviceWasUnlockedLeavesNoTornEnd() throws {
    let files = SimulatedFileSystem()
    let backend = JSONFileBackend(file: file, fileSystem: files)
    _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
    try backend.commit(batch(1, "first"))
    refuse(files, from: 1, EPERM, leaving: 60)
    #expect(code { try backend.commit(batch(2, "second")) } == .protectedDataUnavailable)
    try #require(try !keys(files.copy()).isClean, "the fault leaves half a frame")
    files.fail()
    try backend.close()
    #expect(try keys(files).isClean)
  }

  /// The part of a frame that stays while the store is suspended is the store's own: no other process has written, and nothing is lost.
  @Test func aRefusedWriteBeforeASuspensionIsNoDamageAfterIt() throws {
    let files = SimulatedFileSystem()
    let backend = JSONFileBackend(file: file, fileSystem: files)
    _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
    try backend.commit(batch(1, "first"))
    refuse(files, from: 1, EPERM, leaving: 60)
    #expect(code { try backend.commit(batch(2, "second")) } == .protectedDataUnavailable)
    try backend.suspend()
    files.fail()
    try #require(try !keys(files.copy()).isClean, "half a frame is still there")
    #expect(try backend.resume())
    try backend.commit(batch(2, "again"))
    try backend.close()
    let found = try keys(files)
    #expect(found.commit == 2 && found.keys == ["first", "again"] && found.isClean)
  }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code
    }
  }
}
