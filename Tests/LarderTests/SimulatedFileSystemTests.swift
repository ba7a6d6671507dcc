import Foundation
import Larder
import LarderTesting
import Testing

@Suite("The simulated file system", .timeLimit(.minutes(15)))
struct SimulatedFileSystemTests {
  private let files = SimulatedFileSystem()

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code
    }
  }

  private func write(_ bytes: [UInt8], to file: any OpenFile, at offset: Int = 0) throws {
    try bytes.withUnsafeBytes { try file.write($0, at: offset) }
  }

  private func write(_ text: String, to file: any OpenFile, at offset: Int = 0) throws {
    try write(Array(text.utf8), to: file, at: offset)
  }

  /// A file that was there, whole and durable, before the test.
  private func settled(_ path: String, _ contents: String = "") throws -> any OpenFile {
    let file = try files.create(path)
    try write(contents, to: file)
    try file.sync()
    try files.syncDirectory("/")
    return file
  }

  /// The different states of a file over all images: its text, with dots for zeros, or "-" where it is missing.
  private func states(of path: String, _ kind: CrashKind = .powerLoss) -> Set<String> {
    Set(files.crashImages(kind).map { image in text(image.fileSystem, path) })
  }

  private func text(_ files: SimulatedFileSystem, _ path: String) -> String {
    files.contents(of: path).map { String(decoding: $0.map { $0 == 0 ? UInt8(ascii: ".") : $0 }, as: UTF8.self) } ?? "-"
  }

  // MARK: What programs see

  @Test func whatIsWrittenIsReadBack() throws {
    let file = try files.create("/a")
    try write("hello", to: file)
    try write("!", to: file, at: 6)
    try write("J", to: file)
    #expect(try file.size() == 7)
    #expect(try file.mode() == 0o600)
    #expect(try file.read(at: 0, count: 100) == Data("Jello\0!".utf8))
    #expect(try file.read(at: 4, count: 2) == Data("o\0".utf8))
    #expect(try file.read(at: 7, count: 2).isEmpty)
    try file.setMode(0o640)
    let again = try #require(try files.open("/a", writable: false))
    #expect(try again.read(at: 0, count: 5) == Data("Jello".utf8))
    #expect(try again.mode() == 0o640)
    #expect(code { try write("x", to: again) } == .inputOutput)
    try file.close()
    try file.close()
    #expect(code { _ = try file.size() } == .inputOutput)
    #expect(code { try file.sync() } == .inputOutput)
  }

  @Test func itAgreesWithTheRealFileSystemOnWhatIsMissingOrInTheWay() throws {
    let directory = try TemporaryDirectory()
    for (files, root) in [(POSIXFileSystem(), directory.path), (self.files, "")] as [(any FileSystem, String)] {
      let at = { (path: String) in root + path }
      try files.create(at("/file")).close()
      try files.createDirectory(at("/d/e"))
      #expect(try files.open(at("/none"), writable: true) == nil)
      #expect(try files.open(at("/none/below"), writable: true) == nil)
      #expect(try files.entries(of: at("/none")) == nil)
      #expect(try files.entries(of: at("/none/below")) == nil)
      #expect(try files.entries(of: at("/d")) == ["e"])
      #expect(try files.entries(of: at("/d/e")) == [])
      try files.remove(at("/none"))
      try files.remove(at("/none/below"))
      try files.createDirectory(at("/d/e"))
      #expect(code { _ = try files.create(at("/file")) } == .inputOutput)
      #expect(code { _ = try files.create(at("/none/below")) } == .inputOutput)
      #expect(code { _ = try files.create(at("/file/below")) } == .inputOutput)
      #expect(code { _ = try files.open(at("/file/below"), writable: false) } == .inputOutput)
      #expect(code { _ = try files.open(at("/d"), writable: false) } == .unsupported)
      #expect(code { _ = try files.entries(of: at("/file")) } == .inputOutput)
      #expect(code { _ = try files.entries(of: at("/file/below")) } == .inputOutput)
      #expect(code { try files.remove(at("/file/below")) } == .inputOutput)
      #expect(code { try files.remove(at("/d")) } == .inputOutput)
      #expect(code { try files.rename(at("/none"), to: at("/file")) } == .inputOutput)
      #expect(code { try files.rename(at("/file"), to: at("/d")) } == .inputOutput)
      #expect(code { try files.rename(at("/file"), to: at("/d/file")) } == .unsupported)
      #expect(code { try files.createDirectory(at("/file")) } == .inputOutput)
      #expect(code { try files.createDirectory(at("/file/below")) } == .inputOutput)
      #expect(code { try files.syncDirectory(at("/none")) } == .inputOutput)
      #expect(code { _ = try files.lock(at("/none/lock")) } == .inputOutput)
      let lock = try files.lock(at("/lock"))
      #expect(code { _ = try files.lock(at("/lock")) } == .alreadyOpen)
      #expect(try files.entries(of: root.isEmpty ? "/" : root)?.sorted() == ["d", "file", "lock"])
      lock.release()
      lock.release()
      #expect(try files.entries(of: root.isEmpty ? "/" : root)?.sorted() == ["d", "file"])
      try files.lock(at("/lock")).release()
    }
  }

  @Test func anOpenFileOutlivesItsName() throws {
    let old = try settled("/a", "old")
    let new = try settled("/b", "new")
    try files.rename("/b", to: "/a")
    try files.remove("/a")
    #expect(try old.read(at: 0, count: 9) == Data("old".utf8))
    #expect(try new.read(at: 0, count: 9) == Data("new".utf8))
    #expect(files.paths.isEmpty)
  }

  // MARK: Power loss

  @Test func whatWasSyncedSurvives() throws {
    _ = try settled("/a", "abc")
    #expect(states(of: "/a") == ["abc"])
    #expect(files.crashImages().count == 1)
  }

  @Test func unsyncedBytesMayVanishAndGrowthMayComeWithoutThem() throws {
    let file = try settled("/a", "abc")
    try write("def", to: file, at: 3)
    #expect(states(of: "/a") == ["abc", "abc...", "abcdef"])
    try file.sync()
    #expect(states(of: "/a") == ["abcdef"])
  }

  @Test func unsyncedWritesVanishIndependently() throws {
    let file = try settled("/a", "....")
    try write("A", to: file, at: 0)
    try write("B", to: file, at: 2)
    try write("C", to: file, at: 2)
    #expect(states(of: "/a") == ["....", "A...", "..B.", "A.B.", "..C.", "A.C."])
  }

  @Test func aModeThatWasNotSyncedMayVanish() throws {
    let file = try settled("/a")
    try file.setMode(0o640)
    #expect(Set(files.crashImages().map { $0.fileSystem.mode(of: "/a") }) == [0o600, 0o640])
    try file.sync()
    #expect(Set(files.crashImages().map { $0.fileSystem.mode(of: "/a") }) == [0o640])
  }

  @Test func aSyncedFileWhoseNameWasNotSyncedMayVanish() throws {
    let file = try files.create("/a")
    try write("abc", to: file)
    try file.sync()
    #expect(states(of: "/a") == ["-", "abc"])
    try files.syncDirectory("/")
    #expect(states(of: "/a") == ["abc"])
  }

  @Test func namesVanishIndependently() throws {
    for path in ["/a", "/b"] { try files.create(path).sync() }
    #expect(Set(files.crashImages().map { $0.fileSystem.paths }) == [[], ["/a"], ["/b"], ["/a", "/b"]])
  }

  @Test func aSyncedNameDoesNotSaveTheBytes() throws {
    let file = try files.create("/a")
    try write("abc", to: file)
    try files.syncDirectory("/")
    #expect(states(of: "/a") == ["", "...", "abc"])
  }

  @Test func renameIsAtomicAndDurableOnlyAfterTheDirectorySync() throws {
    _ = try settled("/a", "old")
    _ = try settled("/a.tmp", "new")
    try files.rename("/a.tmp", to: "/a")
    #expect(text(files, "/a") == "new")
    let found = Set(files.crashImages().map { "\(text($0.fileSystem, "/a")) \(text($0.fileSystem, "/a.tmp"))" })
    #expect(found == ["old new", "new -"])
    try files.syncDirectory("/")
    #expect(states(of: "/a") == ["new"])
  }

  @Test func aRenameMayBeDurableBeforeTheBytesAndAfterThem() throws {
    _ = try settled("/a", "old")
    let file = try files.create("/a.tmp")
    try write("new", to: file)
    try files.rename("/a.tmp", to: "/a")
    #expect(states(of: "/a") == ["old", "", "...", "new"])
    let withoutRename = files.crashImages().filter { text($0.fileSystem, "/a") == "old" }
    #expect(Set(withoutRename.map { text($0.fileSystem, "/a.tmp") }) == ["-", "", "...", "new"])
  }

  @Test func aRemovedFileMayComeBack() throws {
    _ = try settled("/a", "abc")
    try files.remove("/a")
    #expect(states(of: "/a") == ["-", "abc"])
    try files.syncDirectory("/")
    #expect(states(of: "/a") == ["-"])
  }

  @Test func directoriesAreMadeDurably() throws {
    try files.createDirectory("/one/two")
    #expect(files.operationCount == 4)
    let file = try files.create("/one/two/a")
    try file.sync()
    try files.syncDirectory("/one/two")
    #expect(states(of: "/one/two/a") == [""])
  }

  @Test func aDirectoryWhoseNameIsLostTakesItsFilesAlong() throws {
    files.crash(beforeOperation: 2)
    #expect(code { try files.createDirectory("/d") } == .inputOutput)
    let found = Set(try files.crashImages().map { try $0.fileSystem.entries(of: "/d") })
    #expect(found == [nil, []])

    let other = SimulatedFileSystem()
    other.fail(FaultPlan(.operation(2), errorNumber: EIO))
    #expect(code { try other.createDirectory("/d") } == .inputOutput)
    try other.create("/d/a").sync()
    try other.syncDirectory("/d")
    #expect(Set(other.crashImages().map { $0.fileSystem.paths }) == [[], ["/d/a"]])
  }

  @Test func aWriteIsTornAtTheSectorsOfTheFile() throws {
    let file = try settled("/a", String(repeating: "o", count: 2_000))
    try write(String(repeating: "n", count: 1_000), to: file, at: 500)
    // Sectors of the write: 500-512, 512-1024, 1024-1500.
    let pieces = [12, 512, 476]
    var found: Set<String> = []
    for image in files.crashImages() {
      let bytes = try #require(image.fileSystem.contents(of: "/a"))
      #expect(bytes.count == 2_000)
      var start = 500
      var pattern = ""
      for count in pieces {
        let piece = Set(bytes[start..<start + count])
        #expect(piece.count == 1)
        pattern += piece == [UInt8(ascii: "n")] ? "n" : "o"
        start += count
      }
      #expect(Set(bytes[..<500] + bytes[1_500...]) == [UInt8(ascii: "o")])
      found.insert(pattern)
    }
    #expect(found.isSuperset(of: ["ooo", "nnn", "noo", "nno", "oon", "onn"]))
  }

  @Test func aSectorIsWrittenWholeOrNotAtAll() throws {
    let file = try settled("/a", String(repeating: "o", count: 512))
    try write(String(repeating: "n", count: 512), to: file)
    #expect(states(of: "/a") == [String(repeating: "o", count: 512), String(repeating: "n", count: 512)])
  }

  @Test func theTornPartOfAGrowingFileReadsAsZero() throws {
    let file = try settled("/a")
    try write(String(repeating: "n", count: 1_024), to: file)
    let half = String(repeating: "n", count: 512)
    let zeros = String(repeating: ".", count: 512)
    #expect(states(of: "/a") == ["", zeros + zeros, half + zeros, zeros + half, half + half])
  }

  @Test func aTornWriteMayComeWithLaterWritesAndWithoutThem() throws {
    let file = try settled("/a", String(repeating: "o", count: 1_025))
    try write(String(repeating: "n", count: 1_024), to: file)
    try write("l", to: file, at: 1_024)
    let torn = String(repeating: "n", count: 512) + String(repeating: "o", count: 512)
    #expect(states(of: "/a").isSuperset(of: [torn + "l", torn + "o"]))
  }

  @Test func everySubsetOfTenChangesIsVisitedAndASampleOfEleven() throws {
    let file = try settled("/a", "..........." + "..")
    for index in 0..<10 { try write("x", to: file, at: index) }
    #expect(states(of: "/a").count == 1_024)
    #expect(files.crashImages(limit: 100).count == 100)
    try write("x", to: file, at: 10)
    let images = files.crashImages(seed: 7)
    #expect(images.count == 66)
    #expect(states(of: "/a").isSuperset(of: [".............", "xxxxxxxxxxx.."]))
    #expect(images.map { text($0.fileSystem, "/a") } == files.crashImages(seed: 7).map { text($0.fileSystem, "/a") })
    #expect(images.map { text($0.fileSystem, "/a") } != files.crashImages(seed: 8).map { text($0.fileSystem, "/a") })
  }

  @Test func anImageIsDurableAndApartFromItsOrigin() throws {
    let file = try settled("/a", "abc")
    try write("X", to: file)
    let images = files.crashImages()
    let kept = images[1].fileSystem
    #expect(text(kept, "/a") == "Xbc")
    #expect(kept.crashImages().count == 1)
    try write("Y", to: try #require(try kept.open("/a", writable: true)))
    #expect(text(files, "/a") == "Xbc")
    try write("Z", to: file)
    #expect(text(kept, "/a") == "Ybc")
    #expect(text(images[1].fileSystem, "/a") == "Xbc")
    #expect(images[0].fileSystem.operationCount == 0)
  }

  @Test func locksDoNotSurviveACrash() throws {
    let lock = try files.lock("/lock")
    let image = files.crashImages()[0].fileSystem
    #expect(try image.entries(of: "/") == [])
    try image.lock("/lock").release()
    lock.release()
  }

  // MARK: Crashes

  @Test func aCrashStopsEveryCallFromThatOperationOn() throws {
    let file = try files.create("/a")
    files.crash(beforeOperation: 3)
    try write("abc", to: file)
    #expect(!files.isDown)
    #expect(code { try file.sync() } == .inputOutput)
    #expect(files.isDown)
    #expect(files.operationCount == 2)
    #expect(code { try file.sync() } == .inputOutput)
    #expect(code { _ = try file.size() } == .inputOutput)
    #expect(code { _ = try file.read(at: 0, count: 1) } == .inputOutput)
    #expect(code { _ = try files.open("/a", writable: false) } == .inputOutput)
    #expect(code { _ = try files.create("/b") } == .inputOutput)
    #expect(code { try files.remove("/a") } == .inputOutput)
    #expect(code { try files.syncDirectory("/") } == .inputOutput)
    #expect(code { _ = try files.entries(of: "/") } == .inputOutput)
    #expect(code { _ = try files.lock("/lock") } == .inputOutput)
    #expect(states(of: "/a") == ["-", "", "...", "abc"])
  }

  @Test func aKilledProcessLeavesEverythingAndAnyPrefixOfTheWriteInFlight() throws {
    let file = try files.create("/a")
    try write("abc", to: file)
    files.crash(beforeOperation: 3)
    #expect(code { try write("def", to: file, at: 3) } == .inputOutput)
    #expect(states(of: "/a", .processKill) == ["abc", "abcd", "abcde", "abcdef"])
    // Nothing of it is durable yet: a power cut after the restart may still take it.
    let image = try #require(files.crashImages(.processKill).last)
    #expect(Set(image.fileSystem.crashImages().map { text($0.fileSystem, "/a") }).isSuperset(of: ["-", "", "abcdef"]))
  }

  // MARK: Faults

  @Test func aFaultHitsItsOperationOnceOrForEver() throws {
    files.fail(FaultPlan(.operation(2), code: .full))
    _ = try files.create("/a")
    #expect(code { _ = try files.create("/b") } == .full)
    _ = try files.create("/b")
    files.fail(FaultPlan(.operation(4), errorNumber: EACCES, isPermanent: true))
    #expect(code { try files.remove("/a") } == .protectedDataUnavailable)
    #expect(code { try files.syncDirectory("/") } == .protectedDataUnavailable)
    #expect(files.paths == ["/a", "/b"])
    #expect(try files.entries(of: "/")?.count == 2)
  }

  @Test func aReadFaultIsNeverAbsence() throws {
    let file = try settled("/a", "abc")
    let before = files.readCount
    files.fail(FaultPlan(.read(before + 1), code: .inputOutput), FaultPlan(.read(before + 3), code: .protectedDataUnavailable))
    #expect(code { _ = try files.open("/a", writable: false) } == .inputOutput)
    #expect(try files.open("/a", writable: false) != nil)
    #expect(code { _ = try files.entries(of: "/") } == .protectedDataUnavailable)
    #expect(try file.read(at: 0, count: 3) == Data("abc".utf8))
  }

  @Test func aFailedWriteLeavesTheBytesPlanned() throws {
    let file = try settled("/a")
    for (count, left) in [(0, ""), (2, "ab"), (9, "abc")] {
      files.fail(FaultPlan(.operation(files.operationCount + 1), code: .full, writtenBytes: count))
      let error = #expect(throws: RepositoryError.self) { try write("abc", to: file) }
      #expect(error?.code == .full)
      #expect(error?.file == "/a")
      #expect(error?.underlying as? SystemCallError == SystemCallError(call: "pwrite", errorNumber: ENOSPC))
      #expect(text(files, "/a") == left)
    }
  }

  @Test func aSecondSyncDoesNotSaveWhatAFailedOneLost() throws {
    let file = try settled("/a", "....")
    try write("A", to: file)
    files.fail(FaultPlan(.operation(files.operationCount + 1), code: .inputOutput))
    #expect(code { try file.sync() } == .inputOutput)
    #expect(text(files, "/a") == "A...")
    try file.sync()
    #expect(states(of: "/a") == ["....", "A..."])
    try write("B", to: file, at: 1)
    try file.sync()
    #expect(states(of: "/a") == [".B..", "AB.."])
    try write("Z", to: file)
    try file.sync()
    #expect(states(of: "/a") == ["ZB.."])
  }

  @Test func aSecondDirectorySyncDoesNotSaveWhatAFailedOneLost() throws {
    try files.create("/a").sync()
    files.fail(FaultPlan(.operation(files.operationCount + 1), code: .inputOutput))
    #expect(code { try files.syncDirectory("/") } == .inputOutput)
    try files.syncDirectory("/")
    #expect(states(of: "/a") == ["-", ""])
  }

  @Test func aPlacedFileIsDurable() throws {
    try files.place(Data("abc".utf8), at: "/a", mode: 0o640)
    #expect(states(of: "/a") == ["abc"])
    #expect(files.mode(of: "/a") == 0o640)
    #expect(files.operationCount == 0)
    #expect(code { try files.place(Data(), at: "/none/a") } == .inputOutput)
  }
}
