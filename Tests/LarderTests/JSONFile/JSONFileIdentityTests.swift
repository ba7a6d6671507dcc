import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Exclusive means the file, not its name; and what is acknowledged can be found again by the names.
@Suite("The identity of a JSON store's files", .timeLimit(.minutes(15))) struct JSONFileIdentityTests {
  private let directory: TemporaryDirectory
  private var file: URL { directory.file("spots.json") }
  private var journal: URL { directory.file("spots.json-journal") }

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ file: URL? = nil) throws -> (JSONFileBackend, Set<String>) {
    let backend = JSONFileBackend(file: file ?? self.file)
    var keys: Set<String> = []
    _ = try backend.openAndRecover(.init()) { keys.insert($0.key.text) }
    return (backend, keys)
  }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code
    }
  }

  private func save(_ commit: UInt64, on backend: JSONFileBackend, _ durability: Durability = .durable) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    try backend.commit(WriteBatch(records: [record], commits: commit...commit, durability: durability))
  }

  @Test func aFileWithTwoNamesIsRefused() throws {
    let (backend, _) = try open()
    try save(1, on: backend)
    let link = directory.file("link.json")
    try FileManager.default.linkItem(at: file, to: link)
    #expect(code { _ = try open(link) } == .alreadyOpen)
    try backend.close()  // puts another file in place, so that the link is an old copy from now on
    try FileManager.default.removeItem(at: link)
    try FileManager.default.linkItem(at: file, to: link)
    let before = try Data(contentsOf: file)
    for name in [file, link] { #expect(code { _ = try open(name) } == .unsupported) }
    #expect(try Data(contentsOf: file) == before)
    #expect(try directory.names == ["link.json", "spots.json"])
    try FileManager.default.removeItem(at: link)
    #expect(try open().1 == ["key 1"])
  }

  /// A directory of which one sync fails.
  private struct Files: ForwardingFileSystem {
    let base: any FileSystem
    /// The number of syncs until the one that fails; negative after it.
    let countdown: Countdown

    func syncDirectory(_ path: String) throws(RepositoryError) {
      if countdown.next() == 0 { throw RepositoryError(.inputOutput, "the sync fails", file: path) }
      try base.syncDirectory(path)
    }
  }

  private final class Countdown: Sendable {
    private let count = Mutex(-1)
    func set(_ new: Int) { count.withLock { $0 = new } }
    func next() -> Int {
      count.withLock { count in
        defer { count -= 1 }
        return count
      }
    }
  }

  /// The first sync of a checkpoint is for the name of the main file, the second for that of the journal.
  @Test(arguments: 0...1) func withoutIdentitiesAJournalWhoseNameCouldNotBeSyncedIsTheStoresOwn(_ sync: Int) throws {
    let countdown = Countdown()
    let backend = JSONFileBackend(file: file, fileSystem: PlainFileSystem(base: Files(base: POSIXFileSystem(), countdown: countdown)))
    _ = try backend.openAndRecover(.init()) { _ in }
    try save(1, on: backend)
    try save(2, on: backend, .buffered)
    countdown.set(sync)
    #expect(code { try backend.checkpoint() } == .inputOutput)
    #expect(countdown.next() < 0)
    try save(3, on: backend)
    try backend.close()
    var keys: Set<String> = []
    let again = JSONFileBackend(file: file, fileSystem: PlainFileSystem(base: POSIXFileSystem()))
    _ = try again.openAndRecover(.init()) { keys.insert($0.key.text) }
    try again.close()
    #expect(keys == ["key 1", "key 2", "key 3"])
  }

  @Test(arguments: [false, true]) func aLockFileThatIsDeletedLetsNobodyIn(afterACheckpoint: Bool) throws {
    let (backend, _) = try open()
    try save(1, on: backend)
    if afterACheckpoint { try backend.checkpoint() }
    try FileManager.default.removeItem(at: directory.file("spots.json-lock"))
    #expect(code { _ = try open() } == .alreadyOpen)
    try save(2, on: backend)
    try backend.close()
    #expect(try open().1 == ["key 1", "key 2"])
  }

  @Test func aDirectoryByAnotherNameHoldsTheSameStore() throws {
    let (backend, _) = try open()
    let link = directory.url.deletingLastPathComponent().appendingPathComponent("larder-link-\(UUID().uuidString)")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: directory.url)
    defer { try? FileManager.default.removeItem(at: link) }
    #expect(code { _ = try open(link.appendingPathComponent("spots.json")) } == .alreadyOpen)
    try FileManager.default.removeItem(at: directory.file("spots.json-lock"))
    #expect(code { _ = try open(link.appendingPathComponent("spots.json")) } == .alreadyOpen)
    try backend.close()
  }

  @Test(arguments: [Durability.durable, .buffered], [false, true])
  func aFileThatIsMovedAwayIsMissedByTheNextCommit(_ durability: Durability, isJournal: Bool) throws {
    let (backend, _) = try open()
    try save(1, on: backend)
    try backend.checkpoint()
    try save(2, on: backend, durability)
    let victim = isJournal ? journal : file
    let aside = directory.file("aside")
    try FileManager.default.moveItem(at: victim, to: aside)
    #expect(code { try save(3, on: backend, durability) } == .dataMissing)
    #expect(code { try backend.flush() } == .dataMissing)
    #expect(code { try backend.checkpoint() } == .dataMissing)
    #expect(!backend.verify().isSound)
    // A copy is not the file.
    try FileManager.default.copyItem(at: aside, to: victim)
    #expect(code { try save(3, on: backend, durability) } == .dataMissing)
    try FileManager.default.removeItem(at: victim)
    try FileManager.default.moveItem(at: aside, to: victim)
    try save(3, on: backend, durability)
    try backend.close()
    #expect(try open().1 == ["key 1", "key 2", "key 3"])
  }

  @Test func aJournalThatIsCutIsMissedByTheNextCommit() throws {
    let (backend, _) = try open()
    try save(1, on: backend)
    #expect(truncate(journal.path, 64) == 0)
    #expect(code { try save(2, on: backend) } == .dataMissing)
    #expect(code { try backend.close() } == .dataMissing)
  }

  @Test func aJournalOfSomebodyElseIsNotReplaced() throws {
    let (backend, _) = try open()
    try Data("theirs".utf8).write(to: journal)
    #expect(code { try save(1, on: backend) } == .locked)
    #expect(try Data(contentsOf: journal) == Data("theirs".utf8))
    try FileManager.default.removeItem(at: journal)
    try save(1, on: backend)
    try backend.close()
  }

  @Test func aDirectoryThatIsMovedIsMissedByTheNextCommit() throws {
    let inner = directory.url.appendingPathComponent("inner", isDirectory: true)
    let (backend, _) = try open(inner.appendingPathComponent("spots.json"))
    try save(1, on: backend)
    try FileManager.default.moveItem(at: inner, to: directory.url.appendingPathComponent("moved"))
    #expect(code { try save(2, on: backend) } == .dataMissing)
    #expect(code { try backend.close() } == .dataMissing)
  }

  @Test func aClosedStoreHoldsNoDescriptor() async throws {
    for _ in 0..<3 {
      let (backend, _) = try open()
      try save(backend.verify().commit.number + 1, on: backend)
      try backend.checkpoint()
      try backend.close()
    }
    let refused = JSONFileBackend(file: file)
    _ = try refused.open(.init()) { _ in }
    refused.abandon()
    #if os(Linux)
      // A checkpoint closes the old main file on another thread, which a busy machine may run only now.
      try await until { (try? directory.openDescriptors()) == 0 }
    #endif
    #expect(try directory.names == ["spots.json"])
  }
}
