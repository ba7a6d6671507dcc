import Foundation
import Larder
import LarderTesting
import Testing

/// Opening reads, the store judges, and only then recovery writes.
@Suite("Opening a JSON store", .timeLimit(.minutes(15))) struct JSONFileOpeningTests {
  private static let main = "/data/spots.json"
  private static let journal = main + "-journal"

  private func backend(_ files: SimulatedFileSystem) -> JSONFileBackend {
    JSONFileBackend(file: URL(fileURLWithPath: Self.main), fileSystem: files, tuning: .init(journalChunk: 4_096))
  }

  private func save(_ commit: UInt64, on backend: JSONFileBackend) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    try backend.commit(WriteBatch(records: [record], commits: commit...commit))
  }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code
    }
  }

  /// Three commits of which the last is torn, and what an interrupted run leaves beside them.
  private func torn() throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    let store = backend(files)
    _ = try store.openAndRecover(.init()) { _ in }
    for commit in 1...3 as ClosedRange<UInt64> { try save(commit, on: store) }
    let left = files.copy()
    var bytes = try #require(left.contents(of: Self.journal))
    let end = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
    for offset in (end - 6)..<end { bytes[offset] = 0 }
    try left.place(bytes, at: Self.journal)
    for suffix in ["-tmp", "-journal-tmp", "-quarantine-1-64-tmp", "-copy-0123456789abcdef-tmp"] {
      try left.place(Data("left".utf8), at: Self.main + suffix)
    }
    return left
  }

  @Test func filesWithNamesAlikeAreLeftAlone() throws {
    let directory = try TemporaryDirectory()
    let names = ["spots.json-copy-1-tmp", "spots.json-quarantine-notes-tmp", "spots.json-1-tmp", "spots.json-copy-1", "spots.json-notes"]
    for name in names { try Data("mine".utf8).write(to: directory.file(name)) }
    let backend = JSONFileBackend(file: directory.file("spots.json"))
    #expect(try backend.openAndRecover(.init()) { _ in }.removedTemporaryFiles == [])
    try backend.close()
    #expect(try directory.names.sorted() == (names + ["spots.json"]).sorted())
  }

  @Test func aNewStoreThatIsRefusedLeavesNothing() throws {
    let directory = try TemporaryDirectory()
    let backend = JSONFileBackend(file: directory.file("spots.json"))
    let report = try backend.open(.init()) { _ in }
    #expect(report.isNew)
    #expect(try directory.names == ["spots.json-lock"])
    backend.abandon()
    #expect(try directory.names == [])
    _ = try backend.open(.init()) { _ in }
    try backend.close()
    #expect(try directory.names == [])
    let created = try backend.openAndRecover(.init()) { _ in }
    #expect(created.isNew)
    try backend.close()
    #expect(try backend.openAndRecover(.init()) { _ in }.storeID == created.storeID)
  }

  @Test func aStoreThatIsRefusedStaysAsItIsAndIsReportedAgain() throws {
    let files = try torn()
    let before = files.fingerprint
    for _ in 0..<3 {
      let refused = backend(files)
      var keys: Set<String> = []
      let report = try refused.open(.init()) { keys.insert($0.key.text) }
      #expect(keys == ["key 1", "key 2"])
      #expect(report.cutTail != nil && report.removedTemporaryFiles.count == 4 && !report.isClean)
      #expect(files.fingerprint == before)
      refused.abandon()
      #expect(files.fingerprint == before)
    }
    let accepted = backend(files)
    let report = try accepted.openAndRecover(.init()) { _ in }
    let cut = try #require(report.cutTail)
    #expect(files.contents(of: cut.quarantineFile)?.count == cut.byteCount)
    #expect(files.paths == [Self.main, Self.journal, cut.quarantineFile])
    try accepted.close()
    #expect(try backend(files).openAndRecover(.init()) { _ in }.isClean)
  }

  @Test func theChangesOfAJournalComeByCollection() throws {
    let files = SimulatedFileSystem()
    let store = backend(files)
    _ = try store.openAndRecover(.init()) { _ in }
    for commit in 1...60 as ClosedRange<UInt64> {
      let record = StoredRecord(
        collection: "spots \(commit % 3)", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1,
        value: commit % 5 == 0 ? nil : Data("{}".utf8))
      try store.commit(WriteBatch(records: [record], commits: commit...commit))
    }
    store.abandon()
    var collections: [String] = []
    let report = try backend(files).open(.init()) { collections.append($0.collection) }
    #expect(report.replayedCommits == 60 && collections.count == 60)
    // A loader ends a pack where the collection changes.
    #expect(zip(collections, collections.dropFirst()).count { $0 != $1 } == 2)
  }

  @Test func strictRefusesEveryTailThatIsNotAWholeCommit() throws {
    let files = try torn()
    let before = files.fingerprint
    let error = #expect(throws: RepositoryError.self) { _ = try backend(files).open(.init(recovery: .strict)) { _ in } }
    #expect(error?.code == .corrupted && error?.file == Self.journal && error?.offset != nil)
    #expect(files.fingerprint == before)
  }

  // MARK: Paths

  @Test func whatIsNoPlainFileIsRefusedWithOneCodeAtOnce() throws {
    for name in ["spots.json", "spots.json-journal"] {
      for kind in ["directory", "pipe", "socket", "link"] {
        let directory = try TemporaryDirectory()
        let path = directory.pathOfFile(name)
        switch kind {
        case "directory": try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        case "pipe": #expect(mkfifo(path, 0o600) == 0)
        case "link": try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: directory.pathOfFile("target"))
        default: #expect(bindSocket(path))
        }
        let accesses: [StoreOptions.Access] = name == "spots.json" ? [.exclusive, .readOnly] : [.exclusive]
        for access in accesses {
          let backend = JSONFileBackend(file: directory.file("spots.json"))
          #expect(code { _ = try backend.open(.init(access: access)) { _ in } } == .unsupported, "\(kind) at \(name)")
        }
        #expect(try directory.names == [name])
      }
    }
    #expect(code { _ = try JSONFileBackend(file: URL(fileURLWithPath: "/dev/null")).open(.init()) { _ in } } == .unsupported)
  }

  private func bindSocket(_ path: String) -> Bool {
    #if canImport(Glibc)
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    defer { _ = close(descriptor) }
    // The path of a socket is short: it is bound from inside its directory's name by a link in /tmp.
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) } == 0
    }
  }

  @Test func aNameThatLeavesNoRoomForTheOthersIsRefusedAtOnce() throws {
    let directory = try TemporaryDirectory()
    for count in [245, 243, 300] {
      let name = String(repeating: "x", count: count - 5) + ".json"
      #expect(code { _ = try JSONFileBackend(file: directory.file(name)).open(.init()) { _ in } } == .unsupported)
    }
    #expect(try directory.names == [])
    // The longest names, also of bytes kept aside, fit.
    let file = directory.file(String(repeating: "ä", count: 118) + "x.json")
    let backend = JSONFileBackend(file: file)
    _ = try backend.openAndRecover(.init(keepsPreviousSnapshot: true)) { _ in }
    for commit in 1...2 as ClosedRange<UInt64> { try save(commit, on: backend) }
    try backend.checkpoint()
    try save(3, on: backend)
    backend.abandon()
    let journal = directory.file(file.lastPathComponent + "-journal")
    var bytes = try Data(contentsOf: journal)
    bytes[bytes.startIndex + 64 + 50] ^= 1
    try bytes.write(to: journal)
    let report = try backend.openAndRecover(.init()) { _ in }
    #expect(FileManager.default.fileExists(atPath: try #require(report.cutTail).quarantineFile))
    #expect(code { try backend.backup(to: directory.file(String(repeating: "y", count: 250))) } == .unsupported)
    try backend.close()
    for name in try directory.names where !name.contains("-quarantine-") {
      try FileManager.default.removeItem(at: directory.file(name))
    }
    #expect(code { _ = try backend.open(.init()) { _ in } } == .dataMissing)
  }

  @Test func aBackupTouchesNothingThatIsNotItsOwn() throws {
    let directory = try TemporaryDirectory()
    let backend = JSONFileBackend(file: directory.file("spots.json"))
    _ = try backend.openAndRecover(.init()) { _ in }
    try save(1, on: backend)
    try Data("theirs".utf8).write(to: directory.file("copy.json-tmp"))
    try backend.backup(to: directory.file("copy.json"))
    #expect(try Data(contentsOf: directory.file("copy.json-tmp")) == Data("theirs".utf8))
    for kind in ["directory", "link"] {
      let target = directory.file(kind)
      if kind == "link" {
        try FileManager.default.createSymbolicLink(at: target, withDestinationURL: directory.file("nothing"))
      } else {
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
      }
      #expect(code { try backend.backup(to: target) } == .alreadyExists)
    }
    try backend.close()
    #expect(try directory.names == ["copy.json", "copy.json-tmp", "directory", "link", "spots.json"])
  }

  // MARK: Numbers and owners

  @Test func numbersThatNoStoreReachesAreRefusedAndDoNotTrap() throws {
    for (generation, commit) in [(UInt64.max, 1), (1, UInt64.max)] as [(UInt64, UInt64)] {
      let files = SimulatedFileSystem()
      try files.createDirectory("/data")
      let header =
        #"{"format":"larder","formatVersion":1,"store":"C0FFEE00-1234-4567-89AB-CDEF01234567","generation":\#(generation),"#
        + #""commit":\#(commit),"tombstonesSince":0"#
      let checksum = Array(header.utf8).withUnsafeBytes { bytes in
        var crc = CRC32C()
        crc.update(bytes)
        return crc.value
      }
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      for shift in [0, 8, 16, 24] as [UInt32] { hash = (hash ^ UInt64(checksum >> shift & 0xFF)) &* 0x100_0000_01B3 }
      let hex = { (number: UInt64, width: Int) in
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: width - digits.count) + digits
      }
      let text = header + #","crc":"\#(hex(UInt64(checksum), 8))","records":["# + "\n" + #"],"count":0,"hash":"\#(hex(hash, 16))"}"# + "\n"
      try files.place(Data(text.utf8), at: Self.main)
      #expect(code { _ = try backend(files).openAndRecover(.init()) { _ in } } == .corrupted)
    }
    let files = SimulatedFileSystem()
    let store = backend(files)
    _ = try store.openAndRecover(.init()) { _ in }
    let record = StoredRecord(collection: "spots", key: RecordKey("a"), revision: Revision(1), schemaVersion: 1, value: Data("1".utf8))
    #expect(code { try store.commit(WriteBatch(records: [record], commits: 1...(.max))) } == .unsupported)
    try save(1, on: store)
  }

  @Test(.enabled(if: geteuid() == 0, "only root may give files away")) func rootLeavesTheFilesToTheirOwner() throws {
    let directory = try TemporaryDirectory()
    let store = JSONFileBackend(file: directory.file("spots.json"))
    _ = try store.openAndRecover(.init()) { _ in }
    try save(1, on: store)
    store.abandon()
    for name in [""] + (try directory.names) { #expect(chown(directory.pathOfFile(name), 4_711, 4_712) == 0) }
    func owners() throws -> Set<UInt32> {
      try Set(
        directory.names.map { name in
          var status = stat()
          #expect(stat(directory.pathOfFile(name), &status) == 0)
          return status.st_uid == 4_711 ? status.st_gid : status.st_uid
        })
    }
    _ = try store.openAndRecover(.init(keepsPreviousSnapshot: true)) { _ in }
    #expect(try owners() == [4_712])
    try store.checkpoint()
    try save(2, on: store)
    #expect(try directory.names.count == 4)
    #expect(try owners() == [4_712])
    try store.close()
    #expect(try owners() == [4_712])
  }

  @Test func aProcessWithoutDescriptorsIsToldSo() throws {
    let files = SimulatedFileSystem()
    files.fail(FaultPlan(.operation(1), errorNumber: EMFILE, isPermanent: true))
    let error = #expect(throws: RepositoryError.self) { _ = try backend(files).open(.init()) { _ in } }
    #expect(error?.code == .inputOutput && (error?.underlying as? SystemCallError)?.errorNumber == EMFILE)
  }
}
