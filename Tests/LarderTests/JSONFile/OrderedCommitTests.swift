import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A file system that counts the syncs and barriers of journals.
private final class CountingFiles: ForwardingFileSystem {
  let base: any FileSystem
  let steps = Mutex<[String]>([])

  init(_ base: any FileSystem) { self.base = base }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try base.open(path, writable: writable).map { File($0, self) }
  }

  func create(_ path: String) throws(RepositoryError) -> any OpenFile { File(try base.create(path), self) }

  /// Returns the steps since the last call.
  func take() -> [String] {
    steps.withLock { steps in
      defer { steps = [] }
      return steps
    }
  }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let files: CountingFiles

    init(_ base: any OpenFile, _ files: CountingFiles) {
      self.base = base
      self.files = files
    }

    func sync() throws(RepositoryError) {
      if path.contains("-journal") { files.steps.withLock { $0.append("sync") } }
      try base.sync()
    }

    func order() throws(RepositoryError) {
      if path.contains("-journal") { files.steps.withLock { $0.append("order") } }
      try base.order()
    }
  }
}

@Suite("Ordered commits", .timeLimit(.minutes(15))) struct OrderedCommitTests {
  private func batch(_ commit: UInt64, _ durability: Durability) -> WriteBatch {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("spot \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("\(commit)".utf8))
    return WriteBatch(records: [record], commits: commit...commit, durability: durability)
  }

  @Test func anOrderedCommitCostsABarrierAndAFlushSyncsItOnce() throws {
    let files = CountingFiles(SimulatedFileSystem())
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files)
    _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
    try backend.commit(batch(1, .durable))
    _ = files.take()
    try backend.commit(batch(2, .ordered))
    #expect(files.take() == ["order"])
    try backend.commit(batch(3, .ordered))
    #expect(files.take() == ["order"])
    try backend.flush()
    #expect(files.take() == ["sync"])
    try backend.flush()
    #expect(files.take().isEmpty)
    try backend.commit(batch(4, .ordered))
    try backend.commit(batch(5, .durable))
    #expect(files.take() == ["order", "sync"])
    try backend.flush()
    #expect(files.take().isEmpty, "the sync of the last commit covers the one before it")
    try backend.close()
  }

  /// A file system without barriers syncs, as every one on Linux does.
  @Test func withoutBarriersAnOrderedCommitSurvivesAPowerCut() throws {
    let files = SimulatedFileSystem()
    let file = URL(fileURLWithPath: "/data/spots.json")
    let backend = JSONFileBackend(file: file, fileSystem: files)
    _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
    for commit: UInt64 in 1...3 { try backend.commit(batch(commit, .ordered)) }
    for image in files.crashImages() {
      let found = try JSONFileBackend(file: file, fileSystem: image.fileSystem).openAndRecover(StoreOptions()) { _ in }
      #expect(found.commit == Revision(3), "\(image.summary)")
    }
    try backend.close()
  }

  @Test func theStrongerOfTwoLevelsIsOneOfThem() {
    let levels: [Durability] = [.durable, .ordered, .buffered]
    for (left, first) in levels.enumerated() {
      for (right, second) in levels.enumerated() { #expect(first.combined(with: second) == levels[min(left, right)]) }
    }
  }

  @Test func aFailedBarrierRefusesLaterWrites() throws {
    let files = SimulatedFileSystem()
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files)
    _ = try backend.openAndRecover(StoreOptions(checkpoint: .manual)) { _ in }
    try backend.commit(batch(1, .ordered))
    files.fail(FaultPlan(.operation(files.operationCount + 2), errorNumber: EIO))
    #expect(code { try backend.commit(batch(2, .ordered)) } == .outcomeUnknown)
    files.fail()
    #expect(code { try backend.commit(batch(2, .ordered)) } == .poisoned)
    backend.abandon()
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
