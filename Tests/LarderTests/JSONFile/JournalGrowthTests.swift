import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite("A journal that grows before it is full", .timeLimit(.minutes(1))) struct JournalGrowthTests {
  /// The real file system, which counts what the thread that commits syncs, and refuses what a test says.
  private final class Files: FileSystem {
    let real = POSIXFileSystem()
    let refused = Mutex<RepositoryError.Code?>(nil)

    func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
      if writable, let code = refused.withLock({ $0 }) { throw RepositoryError(code, file: path) }
      return try real.open(path, writable: writable)
    }
    func status(of path: String) throws(RepositoryError) -> FileStatus? { try real.status(of: path) }
    func create(_ path: String) throws(RepositoryError) -> any OpenFile { try real.create(path) }
    func rename(_ path: String, to newPath: String) throws(RepositoryError) { try real.rename(path, to: newPath) }
    func remove(_ path: String) throws(RepositoryError) { try real.remove(path) }
    func createDirectory(_ path: String) throws(RepositoryError) { try real.createDirectory(path) }
    func syncDirectory(_ path: String) throws(RepositoryError) { try real.syncDirectory(path) }
    func entries(of directory: String) throws(RepositoryError) -> [String]? { try real.entries(of: directory) }
    func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try real.lock(path) }
  }

  private func batch(_ commit: UInt64, _ durability: Durability = .buffered) -> WriteBatch {
    let value = Data(#""\#(String(repeating: "v", count: 4_000))""#.utf8)
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(commit % 7)"), revision: Revision(commit), schemaVersion: 1, value: value)
    return WriteBatch(records: [record], commits: commit...commit, durability: durability)
  }

  @Test func itIsLongerThanItNeedsToBeAndReadsTheSame() throws {
    let directory = try TemporaryDirectory()
    let path = directory.pathOfFile("journal")
    let header = JournalHeader(storeID: UUID(), generation: 1, base: 0, salt: 7, tag: 0)
    let files = Files()
    let file = try files.create(path)
    let contents = try JournalWriter.create(file, header, chunk: 4_096)
    var writer = try JournalWriter(continuing: file, contents, chunk: 4_096, name: path, growingIn: files)
    var ahead = 0
    for commit in 1...1_000 as ClosedRange<UInt64> {
      try writer.append(batch(commit, commit % 100 == 0 ? .durable : .buffered))
      if commit > 200, writer.allocated - writer.end > writer.end / 8 { ahead += 1 }
      #expect(try file.size() >= writer.allocated && writer.allocated > writer.end)
    }
    // By a sixteenth at a time nothing would ever be ahead by so much.
    #expect(ahead > 100)
    try writer.close()
    let data = try Data(contentsOf: directory.file("journal"))
    let found = try JournalReader(data: data, file: path).read { _ in }
    #expect(found.lastCommit == 1_000 && found.tail == .clean && found.end == writer.end)
  }

  @Test func whereItCannotGrowAheadItGrowsWhenItIsFull() throws {
    let directory = try TemporaryDirectory()
    let path = directory.pathOfFile("journal")
    let files = Files()
    files.refused.withLock { $0 = .inputOutput }
    let file = try files.create(path)
    let contents = try JournalWriter.create(file, JournalHeader(storeID: UUID(), generation: 1, base: 0, salt: 7, tag: 0), chunk: 4_096)
    var writer = try JournalWriter(continuing: file, contents, chunk: 4_096, name: path, growingIn: files)
    for commit in 1...300 as ClosedRange<UInt64> { try writer.append(batch(commit)) }
    #expect(writer.lastCommit == 300)
    // What a failed sync leaves is unknown, whoever has called it.
    files.refused.withLock { $0 = .outcomeUnknown }
    var failure: RepositoryError?
    do throws(RepositoryError) {
      for commit in 301...2_000 as ClosedRange<UInt64> { try writer.append(batch(commit)) }
    } catch {
      failure = error
    }
    #expect(failure?.code == .outcomeUnknown)
    try writer.close()
  }
}
