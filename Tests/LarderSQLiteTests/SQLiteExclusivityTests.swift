import CSQLite
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

@Suite("SQLite: exclusive means the file", .timeLimit(.minutes(15)))
struct SQLiteExclusivityTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private func openStore(_ access: StoreOptions.Access = .exclusive) throws -> SQLiteBackend {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll(StoreOptions(access: access, lockTimeout: .milliseconds(50)))
    return backend
  }

  @Test func aLockFileThatWasDeletedByHandExcludesAllTheSame() throws {
    let backend = try openStore()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    try FileManager.default.removeItem(atPath: main + "-lock")
    for access in [StoreOptions.Access.exclusive, .shared] { #expect(code { _ = try openStore(access) } == .alreadyOpen, "\(access)") }
    try backend.commit([record("b", "1", at: 2)], at: 2)
    try backend.close()
    #expect(try readBack(url).contents.count == 2)

    let shared = try openStore(.shared)
    try FileManager.default.removeItem(atPath: main + "-lock")
    for access in [StoreOptions.Access.exclusive, .shared] { #expect(code { _ = try openStore(access) } == .alreadyOpen, "\(access)") }
    try shared.close()
    #expect(try readBack(url).contents.count == 2)
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
  }

  #if os(Linux)
    /// The lock is one of the open file, on a byte far from those that SQLite locks: on Darwin a `flock` would exclude SQLite's own locks.
    @Test func theLockOnTheDatabaseIsOnAByteThatSQLiteLeavesAlone() throws {
      let backend = try openStore()
      try backend.commit([record("a", "1", at: 1)], at: 1)
      #expect(try locks().filter { !$0.hasPrefix("POSIX") } == ["OFDLCK WRITE 4611686018427387904 4611686018427387904"])
      // What SQLite has locked lies below.
      #expect(try locks().contains { $0.hasPrefix("POSIX READ 10737418") })
      try backend.close()
      let shared = try openStore(.shared)
      #expect(try locks().filter { !$0.hasPrefix("POSIX") } == ["OFDLCK READ 4611686018427387904 4611686018427387904"])
      // Closing another descriptor of the file leaves the lock alone.
      close(open(main, O_RDWR))
      #expect(try locks().contains { $0.hasPrefix("OFDLCK READ") })
      try shared.close()
      #expect(try locks() == [])
    }

    /// Returns the locks that the system has of the database: kind, type, first and last byte.
    private func locks() throws -> [String] {
      let inode = try #require(FileManager.default.attributesOfItem(atPath: main)[.systemFileNumber] as? Int)
      return try String(contentsOf: URL(filePath: "/proc/locks"), encoding: .utf8).split(separator: "\n").compactMap { line in
        let words = line.split(separator: " ")
        guard words.count == 8, words[5].hasSuffix(":\(inode)") else { return nil }
        return "\(words[1]) \(words[3]) \(words[6]) \(words[7])"
      }
    }

    /// A descriptor of the file is not closed while another store of the process has it open, and is used again.
    @Test func openingAgainBesideAReaderTakesNoMoreDescriptors() throws {
      let backend = try openStore()
      try backend.commit([record("a", "1", at: 1)], at: 1)
      let reader = try openStore(.readOnly)
      try backend.close()
      var counts: [Int] = []
      for _ in 0..<20 {
        _ = try backend.openAll()
        try backend.close()
        counts.append(try openDescriptors())
      }
      #expect(counts.last == counts.first, "\(counts)")
      try reader.close()
    }

    private func openDescriptors() throws -> Int {
      let folder = "/proc/self/fd"
      return try FileManager.default.contentsOfDirectory(atPath: folder).count { name in
        var target = [CChar](repeating: 0, count: 4_096)
        // Descriptors of other tests come and go meanwhile: one that is gone has no target.
        let length = readlink("\(folder)/\(name)", &target, target.count)
        return length > 0 && String(decoding: target.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self) == main
      }
    }
  #endif

  @Test func aFileOfTwoNamesIsRefused() throws {
    let backend = try openStore()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    let other = directory.file("other.sqlite")
    try FileManager.default.linkItem(at: url, to: other)
    for access in [StoreOptions.Access.exclusive, .shared, .readOnly] {
      #expect(code { _ = try readBack(other, StoreOptions(access: access)) } == .unsupported)
    }
    try backend.commit([record("b", "1", at: 2)], at: 2)
    try backend.close()
    try FileManager.default.removeItem(at: other)
    #expect(try readBack(url).contents.count == 2)
  }

  @Test func whatAnotherProgramCommittedIsNotWrittenOver() throws {
    let backend = try openStore()
    try backend.commit([record("a", "1", at: 1)], at: 1)
    // Indexes may be added by hand.
    do { try ForeignDatabase(url).run("CREATE INDEX by_version ON spots (version)") }
    try backend.commit([record("b", "1", at: 2)], at: 2)
    // Another writer of stores, by a name that is not checked.
    try FileManager.default.copyItem(at: url, to: directory.file("saved.sqlite"))
    do {
      let opened = try SQLiteConnection(path: main, .readWrite)
      let other = try #require(opened)
      let scan = try SQLiteScan(other)
      while try scan.next() != nil {}
      var next = scan.row
      next.commit += 1
      let statement = try other.prepare(SQLiteStoreRow.update)
      try next.bind(to: statement)
      try statement.run()
      other.keepLogOnClose()
    }
    for _ in 0..<2 { #expect(code { try backend.commit([record("c", "1", at: 3)], at: 3) } == .locked) }
    try backend.close()
    let (report, contents) = try readBack(url)
    #expect(report.commit == Revision(3) && contents.count == 2)
  }

  @Test(arguments: ["", "-wal", "-shm"])
  func aFileThatIsUnlinkedOrReplacedUnderAStoreIsMissing(_ suffix: String) throws {
    for isReplaced in [true, false] {
      for access in [StoreOptions.Access.exclusive, .shared] { try takeAway(suffix, isReplaced: isReplaced, access) }
    }
  }

  private func takeAway(_ suffix: String, isReplaced: Bool, _ access: StoreOptions.Access) throws {
    try directory.replace(with: [:])
    let backend = try openStore(access)
    var commit: UInt64 = 0
    // For longer than the directory's time needs to tell two changes apart: from then on it alone is looked at.
    let start = ContinuousClock.now
    while commit == 0 || ContinuousClock.now - start < .milliseconds(150) {
      commit += 1
      _ = try backend.beginCommit(after: Revision(commit - 1), .buffered)
      try backend.commit([record("a", "1", at: commit)], at: commit, .buffered)
    }
    let (path, aside) = (main + suffix, main + "-aside")
    try FileManager.default.moveItem(atPath: path, toPath: aside)
    if isReplaced { try FileManager.default.copyItem(atPath: aside, toPath: path) }
    let found = code {
      _ = try backend.beginCommit(after: Revision(commit), .durable)
      try backend.commit([record("b", "1", at: commit + 1)], at: commit + 1)
    }
    #expect(found == .dataMissing, "\(suffix), \(isReplaced), \(access)")
    if isReplaced { try FileManager.default.removeItem(atPath: path) }
    try FileManager.default.moveItem(atPath: aside, toPath: path)
    _ = try backend.beginCommit(after: Revision(commit), .durable)
    try backend.commit([record("b", "1", at: commit + 1)], at: commit + 1)
    try backend.close()
    #expect(try readBack(url).contents.count == 2)
  }

  // MARK: Cost

  @Test func aLookThatFindsNothingNewOpensNoFile() throws {
    let writer = try openStore()
    try writer.commit([record("a", "1", at: 1)], at: 1)
    let reader = SQLiteBackend(file: url)
    var revision = try reader.openAll(StoreOptions(access: .readOnly)).report.commit
    for closed in [false, true] {
      if closed { try writer.close() } else { try writer.commit([record("b", "1", at: 2)], at: 2) }
      for path in [main, main + "-wal"] where FileManager.default.fileExists(atPath: path) {
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -10)], ofItemAtPath: path)
      }
      if let commits = try reader.foreignCommits(after: revision) { revision = commits.commit }
      #expect(try reader.foreignCommits(after: revision) == nil)
      let opened = FaultyFiles.count(.open, at: main)
      for _ in 0..<100 { #expect(try reader.foreignCommits(after: revision) == nil) }
      #expect(FaultyFiles.count(.open, at: main) == opened)
      #expect(revision == Revision(2))
    }
    let again = try openStore()
    try again.commit([record("c", "1", at: 3)], at: 3)
    #expect(try reader.foreignCommits(after: revision)?.records.count == 1)
    try again.close()
    try reader.close()
  }

  @Test func aCheckpointWritesThePagesThatChanged() throws {
    let backend = try openStore()
    let value = "\"" + String(repeating: "v", count: 300) + "\""
    try backend.commit((0..<5_000).map { record("spot-\($0)", value, at: 1) }, at: 1)
    try backend.checkpoint()
    let pages = try #require(FileManager.default.attributesOfItem(atPath: main)[.size] as? Int) / 4_096
    for number: UInt64 in 2...6 {
      let before = FaultyFiles.count(.write, at: main)
      try backend.commit([record("spot-\(number * 700)", value, at: number)], at: number)
      try backend.checkpoint()
      #expect(FaultyFiles.count(.write, at: main) - before <= 4, "of \(pages) pages")
    }
    try backend.close()
  }
}
