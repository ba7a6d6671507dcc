import Dispatch
import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// The work that a checkpoint beside commits leaves between two of them: nothing that waits for the disk, and nothing large to free.
@Suite("Between two commits beside a checkpoint", .timeLimit(.minutes(15))) struct JSONFileBackgroundTests {
  private func save(_ commit: UInt64, on backend: JSONFileBackend, _ durability: Durability = .buffered) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    try backend.commit(WriteBatch(records: [record], commits: commit...commit, durability: durability))
  }

  @Test(arguments: [0, 1, 5]) func nothingIsSynced(savesInEachPart count: Int) throws {
    let files = CountingFileSystem()
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files)
    _ = try backend.openAndRecover(.init()) { _ in }
    var commit: UInt64 = 0
    func saveSome(_ number: Int) throws {
      for _ in 0..<number {
        commit += 1
        try save(commit, on: backend)
      }
    }
    for _ in 0..<3 {
      try saveSome(20)
      var parts = 0
      let before = files.syncs
      var between = 0
      var work = try backend.beginCheckpoint()
      between += files.syncs - before
      while let part = work {
        parts += 1
        part()
        let before = files.syncs
        try saveSome(count)
        work = try backend.continueCheckpoint()
        between += files.syncs - before
      }
      #expect(parts == 3 && between == 0)
      #expect(files.syncs > before)
    }
    // What is durable waits for all that it rests on.
    commit += 1
    try save(commit, on: backend, .durable)
    for image in files.real.crashImages(.powerLoss) {
      let again = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: image.fileSystem)
      #expect(try again.openAndRecover(.init()) { _ in }.commit == Revision(commit))
    }
    try backend.close()
  }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do { try body() } catch { return (error as? RepositoryError)?.code }
    return nil
  }

  /// A store whose checkpoint has still to make the name of its new journal durable, and what does.
  private func nameless(_ files: SimulatedFileSystem) throws -> (JSONFileBackend, () -> Void) {
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files)
    _ = try backend.openAndRecover(.init()) { _ in }
    for commit: UInt64 in 1...3 { try save(commit, on: backend) }
    let snapshot = try #require(try backend.beginCheckpoint())
    snapshot()
    let journal = try #require(try backend.continueCheckpoint())
    journal()
    return (backend, try #require(try backend.continueCheckpoint()))
  }

  @Test func aFlushMakesTheNameOfItsJournalDurable() throws {
    let files = SimulatedFileSystem()
    let (backend, work) = try nameless(files)
    try save(4, on: backend)
    try backend.flush()
    for image in files.crashImages(.powerLoss) {
      let again = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: image.fileSystem)
      #expect(try again.openAndRecover(.init()) { _ in }.commit == Revision(4))
      again.abandon()
    }
    withExtendedLifetime(work) { backend.abandon() }
  }

  @Test func aSyncOfTheNameThatFailedIsNotForgotten() throws {
    let files = SimulatedFileSystem()
    let (backend, work) = try nameless(files)
    files.fail(FaultPlan(.operation(files.operationCount + 1), code: .inputOutput))
    work()
    #expect(code { try save(4, on: backend, .durable) } == .outcomeUnknown)
    #expect(code { try save(4, on: backend, .durable) } == .poisoned)
    backend.abandon()
  }

  @Test func aSyncOfTheNameThatFailedIsNotedWhenTheCheckpointIsGivenUp() throws {
    let files = SimulatedFileSystem()
    let (backend, work) = try nameless(files)
    files.fail(FaultPlan(.operation(files.operationCount + 1), code: .inputOutput))
    work()
    try save(4, on: backend)
    #expect(code { try backend.checkpoint() } == .poisoned)
    backend.abandon()
  }

  @Test func aDeletionOnAFullDiskWaitsForTheNameOfItsJournal() throws {
    let files = SimulatedFileSystem()
    let (backend, work) = try nameless(files)
    let deletion = StoredRecord(collection: "spots", key: RecordKey("key 1"), revision: Revision(4), schemaVersion: 1, value: nil)
    // The directory is synced, the deletion written and synced; there is no room for a snapshot.
    files.fail(FaultPlan(.operation(files.operationCount + 4), code: .full, isPermanent: true))
    try backend.commitOnFullDisk(WriteBatch(records: [deletion], commits: 4...4, durability: .durable))
    for image in files.crashImages(.powerLoss) {
      let again = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: image.fileSystem)
      #expect(try again.openAndRecover(.init()) { _ in }.commit == Revision(4))
      again.abandon()
    }
    withExtendedLifetime(work) { backend.abandon() }
  }

  @Test func whatWasFoldedIsFreedByTheWork() throws {
    let files = CountingFileSystem()
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files)
    _ = try backend.openAndRecover(.init()) { _ in }
    try save(1, on: backend)
    try backend.checkpoint()
    try save(2, on: backend)
    let old = try #require(files.newest(of: "/data/spots.json-tmp"))
    var first = try backend.beginCheckpoint()
    first?()
    first = nil
    let next = try #require(try backend.continueCheckpoint())
    #expect(!old.isFreed)
    next()
    // Nobody has let go of the work, which is what holds it. Another thread may be about to.
    let isFreed = DispatchSemaphore(value: 0)
    if old.listen({ isFreed.signal() }) { #expect(isFreed.wait(timeout: .now() + 20) == .success) }
    withExtendedLifetime(next) {}
    while let part = try backend.continueCheckpoint() { part() }
    try backend.close()
  }
}

/// Simulated files, with a count of what was synced.
private final class CountingFileSystem: FileSystem {
  let real = SimulatedFileSystem()
  private let count = Mutex(0)
  private let made = Mutex<[String: FileEnd]>([:])

  var syncs: Int { count.withLock { $0 } }
  fileprivate func note() { count.withLock { $0 += 1 } }

  /// The end of the file that was made last under a name.
  func newest(of path: String) -> FileEnd? { made.withLock { $0[path] } }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let file = try real.open(path, writable: writable) else { return nil }
    return CountingFile(file, self)
  }
  func status(of path: String) throws(RepositoryError) -> FileStatus? { try real.status(of: path) }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let file = CountingFile(try real.create(path), self)
    made.withLock { $0[path] = file.end }
    return file
  }
  func rename(_ path: String, to newPath: String) throws(RepositoryError) { try real.rename(path, to: newPath) }
  func remove(_ path: String) throws(RepositoryError) { try real.remove(path) }
  func createDirectory(_ path: String) throws(RepositoryError) { try real.createDirectory(path) }
  func syncDirectory(_ path: String) throws(RepositoryError) {
    note()
    try real.syncDirectory(path)
  }
  func entries(of directory: String) throws(RepositoryError) -> [String]? { try real.entries(of: directory) }
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try real.lock(path) }
}

/// Whether nobody has a file any more.
private final class FileEnd: Sendable {
  private struct Listener: Sendable { let call: @Sendable () -> Void }
  private struct State: Sendable {
    var isFreed = false
    var listener: Listener?
  }
  private let state = Mutex(State())

  var isFreed: Bool { state.withLock { $0.isFreed } }

  /// Calls when the file is freed; `false` when it has been.
  func listen(_ body: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      if !state.isFreed { state.listener = Listener(call: body) }
      return !state.isFreed
    }
  }

  func note() {
    let listener = state.withLock { state in
      state.isFreed = true
      return state.listener
    }
    listener?.call()
  }
}

private final class CountingFile: OpenFile {
  private let real: any OpenFile
  private let files: CountingFileSystem
  let end = FileEnd()
  var path: String { real.path }

  init(_ real: any OpenFile, _ files: CountingFileSystem) {
    self.real = real
    self.files = files
  }

  deinit { end.note() }

  func status() throws(RepositoryError) -> FileStatus { try real.status() }
  func lock() throws(RepositoryError) { try real.lock() }
  func setOwner(_ owner: FileOwner) throws(RepositoryError) { try real.setOwner(owner) }
  func size() throws(RepositoryError) -> Int { try real.size() }
  func mode() throws(RepositoryError) -> UInt16 { try real.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try real.setMode(mode) }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data { try real.read(at: offset, count: count) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) { try real.write(bytes, at: offset) }
  func sync() throws(RepositoryError) {
    files.note()
    try real.sync()
  }
  func close() throws(RepositoryError) { try real.close() }
}
