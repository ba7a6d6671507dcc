import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("A journal that grows before it is full", .timeLimit(.minutes(15))) struct JournalGrowthTests {
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

  /// A large frame has its space left out when the journal grows for it, but not where the journal has room already.
  @Test func aBrokenLargeFrameIsTakenBackOutOfRoomThatWasThere() throws {
    let files = SimulatedFileSystem()
    let header = JournalHeader(storeID: UUID(), generation: 1, base: 0, salt: 7, tag: 0)
    let file = try files.create("/journal")
    let contents = try JournalWriter.create(file, header, chunk: 4_096)
    var writer = try JournalWriter(continuing: file, contents, chunk: 4_096, name: "/journal")
    try writer.growAgain(to: 1 << 20)
    files.fail(FaultPlan(.operation(files.operationCount + 1), errorNumber: EIO, writtenBytes: 80_000))
    let large = StoredRecord(
      collection: "spots", key: RecordKey("large"), revision: Revision(1), schemaVersion: 1,
      value: Data(#""\#(String(repeating: "v", count: 100_000))""#.utf8))
    #expect(throws: RepositoryError.self) { try writer.append(WriteBatch(records: [large], commits: 1...1)) }
    #expect(try !writer.hasBrokenFrame && file.read(at: writer.end, count: .max).allSatisfy { $0 == 0 })
    try writer.append(batch(1, .durable))
    let found = try JournalReader(data: file.read(at: 0, count: .max), file: "/journal").read { _ in }
    #expect(found.lastCommit == 1 && found.tail == .clean)
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

  /// A power cut that kept a frame and lost the size of its file would leave a journal that ends within a frame, which is damage.
  @Test func aGrowthIsOnTheDiskBeforeItIsUsed() throws {
    let files = SimulatedFileSystem()
    let file = try files.create("/journal")
    try file.allocate(0..<4_096)
    try file.sync()
    try files.syncDirectory("/")
    let identity = try #require(try file.status().identity)
    let work = JournalGrowth.begin(of: "/journal", identity: identity, range: 4_096..<8_192, in: files)
    work.run()
    #expect(try work.result() == 8_192)
    for image in files.crashImages(.powerLoss) { #expect(image.fileSystem.contents(of: "/journal")?.count == 8_192) }
  }

  // MARK: Large frames

  /// A file that counts the bytes that are written to it.
  private final class CountingFile: ForwardingFile {
    let base: any OpenFile
    let count = Mutex(0)

    init(_ base: any OpenFile) { self.base = base }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
      count.withLock { $0 += bytes.count }
      try base.write(bytes, at: offset)
    }
  }

  private func largeBatch(_ commit: UInt64, bytes: Int) -> WriteBatch {
    let value = Data(#""\#(String(repeating: "v", count: bytes))""#.utf8)
    let record = StoredRecord(collection: "spots", key: RecordKey("large"), revision: Revision(commit), schemaVersion: 1, value: value)
    return WriteBatch(records: [record], commits: commit...commit)
  }

  private var header: JournalHeader { JournalHeader(storeID: UUID(), generation: 1, base: 0, salt: 7, tag: 0) }

  @Test func aLargeFrameIsWrittenOnce() throws {
    let file = CountingFile(try SimulatedFileSystem().create("/journal"))
    let contents = try JournalWriter.create(file, header, chunk: 4_096)
    var writer = try JournalWriter(continuing: file, contents, chunk: 4_096)
    let before = file.count.withLock { $0 }
    try writer.append(largeBatch(1, bytes: 1 << 20))
    let written = file.count.withLock { $0 } - before
    #expect(written < (1 << 20) + (1 << 18), "the frame, and zero bytes behind it, not under it")
    let data = try file.read(at: 0, count: .max)
    let found = try JournalReader(data: data, file: "journal").read { _ in }
    #expect(found.lastCommit == 1 && found.tail == .clean && data.count > writer.end)
  }

  @Test func aLargeFrameThatHasNoRoomIsTakenBack() throws {
    var (refused, unknown) = (0, 0)
    for step in 1... {
      let files = SimulatedFileSystem()
      let file = try files.create("/journal")
      let contents = try JournalWriter.create(file, header, chunk: 4_096)
      var writer = try JournalWriter(continuing: file, contents, chunk: 4_096)
      try writer.append(batch(1, .durable))
      let (end, size) = (writer.end, try file.size())
      files.fail(FaultPlan(.operation(files.operationCount + step), code: .full, writtenBytes: 50_000))
      do throws(RepositoryError) {
        try writer.append(largeBatch(2, bytes: 100_000))
        #expect(step == 5, "zero bytes, sync, frame, sync")
        break
      } catch {
        // A failed sync, or one that takes back: what is on the disk is not known then.
        guard error.code == .full else {
          unknown += 1
          continue
        }
        refused += 1
      }
      #expect(try writer.end == end && file.size() <= size + 4_096)
      try writer.append(batch(2, .durable))
      let found = try JournalReader(data: file.read(at: 0, count: .max), file: "journal").read { _ in }
      #expect(found.lastCommit == 2 && found.tail == .clean, "step \(step)")
    }
    #expect(refused == 2 && unknown == 2)
  }

  /// A file that ends within a frame counts as cut off, so no crash may leave one.
  @Test(arguments: [CrashKind.processKill, .powerLoss]) func aCrashWhileALargeFrameIsTakenBackLeavesAJournalThatIsRead(_ kind: CrashKind)
    throws
  {
    var images = 0
    for crash in 1... {
      let files = SimulatedFileSystem()
      let file = try files.create("/journal")
      try files.syncDirectory("/")
      let contents = try JournalWriter.create(file, header, chunk: 4_096)
      var writer = try JournalWriter(continuing: file, contents, chunk: 4_096)
      try writer.append(batch(1, .durable))
      let frame = files.operationCount + 3
      files.fail(FaultPlan(.operation(frame), code: .full, writtenBytes: 50_000))
      files.crash(beforeOperation: frame + crash)
      do throws(RepositoryError) {
        try writer.append(largeBatch(2, bytes: 100_000))
      } catch {}
      for image in files.crashImages(kind) {
        images += 1
        let data = try #require(image.fileSystem.contents(of: "/journal"))
        let found = try JournalReader(data: data, file: "journal").read { _ in }
        #expect(found.lastCommit == 1, "crash \(crash)")
      }
      guard files.isDown else { break }
    }
    #expect(images > 3)
  }
}
