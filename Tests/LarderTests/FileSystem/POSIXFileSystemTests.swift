import Foundation
import Larder
import Testing

@testable import class Larder.POSIXFile

@Suite("Files of the operating system")
struct POSIXFileSystemTests {
  private let directory: TemporaryDirectory
  private let files = POSIXFileSystem()

  init() throws { directory = try TemporaryDirectory() }

  private func code(_ body: () throws -> Void) -> RepositoryError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code
    }
  }

  private func write(_ text: String, to file: any OpenFile, at offset: Int = 0) throws {
    try Array(text.utf8).withUnsafeBytes { try file.write($0, at: offset) }
  }

  @Test func whatIsWrittenIsReadBackByAnotherDescriptor() throws {
    let path = directory.pathOfFile("a")
    let file = try files.create(path)
    try write("hello", to: file)
    try write("J", to: file, at: 0)
    try write("!", to: file, at: 7)
    try file.sync()
    try file.sync()
    #expect(try file.size() == 8)
    #expect(file.path == path)
    try file.close()

    let again = try #require(try files.open(path, writable: false))
    #expect(try again.read(at: 0, count: 100) == Data("Jello\0\0!".utf8))
    #expect(try again.read(at: 2, count: 3) == Data("llo".utf8))
    #expect(try again.read(at: 6, count: .max) == Data("\0!".utf8))
    #expect(try again.read(at: 8, count: 1).isEmpty)
    #expect(try again.read(at: 9_000, count: 1).isEmpty)
    #expect(try again.read(at: 0, count: 0).isEmpty)
  }

  /// The status comes without the file's times, by another call than this one, where the system has it.
  @Test func aStatusIsWhatTheSystemTells() throws {
    let path = directory.pathOfFile("a")
    let file = try files.create(path)
    try write("hello", to: file)
    try file.close()
    try FileManager.default.linkItem(atPath: path, toPath: directory.pathOfFile("b"))
    try FileManager.default.createSymbolicLink(atPath: directory.pathOfFile("link"), withDestinationPath: path)
    let kinds: [(String, FileStatus.Kind)] = [
      (path, .file), (directory.pathOfFile("link"), .symbolicLink), (directory.url.path, .directory),
    ]
    for (path, kind) in kinds {
      let status = try #require(try files.status(of: path))
      let told = try FileManager.default.attributesOfItem(atPath: path)
      #expect(status.kind == kind)
      #expect(status.size == told[.size] as? Int)
      #expect(Int(status.mode & 0o777) == told[.posixPermissions] as? Int)
      #expect(status.linkCount == told[.referenceCount] as? Int)
      #expect(status.owner?.user == told[.ownerAccountID] as? UInt32)
    }
    let opened = try #require(try files.open(path, writable: false))
    #expect(try opened.status().identity == files.status(of: path)?.identity)
    try opened.close()
    #expect(try files.status(of: directory.pathOfFile("missing")) == nil)
  }

  @Test func allocatedSpaceReadsAsZeroBytesAndIsTheFiles() throws {
    let path = directory.pathOfFile("grown")
    let file = try files.create(path)
    try write("abc", to: file)
    try file.allocate(3..<300_000)
    try file.allocate(300_000..<300_000)
    try file.sync()
    try write("x", to: file, at: 200_000)
    #expect(try file.size() == 300_000)
    var expected = Data("abc".utf8) + Data(repeating: 0, count: 299_997)
    expected[200_000] = UInt8(ascii: "x")
    #expect(try file.read(at: 0, count: .max) == expected)
    #expect(code { try file.allocate(-1..<10) } == .inputOutput)
    try file.close()
    #expect(code { try file.allocate(300_000..<300_001) } == .inputOutput)
    // Not a file with a hole: a full disk could not fill it.
    var status = stat()
    #expect(stat(path, &status) == 0 && Int(status.st_blocks) * 512 >= 300_000)
  }

  @Test func absenceIsNilAndRemovingNothingIsNoError() throws {
    #expect(try files.open(directory.pathOfFile("none"), writable: false) == nil)
    #expect(try files.open(directory.pathOfFile("none"), writable: true) == nil)
    #expect(try files.open(directory.pathOfFile("no/such/directory"), writable: true) == nil)
    #expect(try files.entries(of: directory.pathOfFile("none")) == nil)
    try files.remove(directory.pathOfFile("none"))
  }

  @Test func aParentThatIsAFileIsAFailureAndNotAbsence() throws {
    try files.create(directory.pathOfFile("file")).close()
    let below = directory.pathOfFile("file/below")
    #expect(code { _ = try files.open(below, writable: false) } == .inputOutput)
    #expect(code { _ = try files.create(below) } == .inputOutput)
    #expect(code { try files.remove(below) } == .inputOutput)
    #expect(code { _ = try files.entries(of: below) } == .inputOutput)
    #expect(code { _ = try files.entries(of: directory.pathOfFile("file")) } == .inputOutput)
    #expect(code { try files.createDirectory(below) } == .inputOutput)
    #expect(code { try files.createDirectory(directory.pathOfFile("file")) } == .inputOutput)
    #expect(code { try files.syncDirectory(below) } == .inputOutput)
    #expect(code { _ = try files.lock(below) } == .inputOutput)
  }

  @Test func creatingDoesNotTouchAFileThatIsThere() throws {
    let path = directory.pathOfFile("a")
    let file = try files.create(path)
    try write("kept", to: file)
    #expect(code { _ = try files.create(path) } == .inputOutput)
    #expect(try file.read(at: 0, count: 10) == Data("kept".utf8))
  }

  @Test func aFileOpenedForReadingRefusesAWrite() throws {
    try files.create(directory.pathOfFile("a")).close()
    let file = try #require(try files.open(directory.pathOfFile("a"), writable: false))
    let error = #expect(throws: RepositoryError.self) { try write("x", to: file) }
    #expect(error?.code == .inputOutput)
    #expect(error?.file == directory.pathOfFile("a"))
    #expect(error?.underlying as? SystemCallError == SystemCallError(call: "pwrite", errorNumber: EBADF))
  }

  @Test func symbolicLinksAreNotFollowed() throws {
    let target = directory.pathOfFile("target")
    try files.create(target).close()
    try FileManager.default.createSymbolicLink(atPath: directory.pathOfFile("link"), withDestinationPath: target)
    try FileManager.default.createSymbolicLink(atPath: directory.pathOfFile("dangling"), withDestinationPath: directory.pathOfFile("x"))
    for name in ["link", "dangling"] {
      let link = directory.pathOfFile(name)
      #expect(code { _ = try files.open(link, writable: false) } == .unsupported)
      #expect(code { _ = try files.open(link, writable: true) } == .unsupported)
      #expect(code { _ = try files.create(link) } == .inputOutput)
      #expect(code { _ = try files.lock(link) } == .unsupported)
    }
    #expect(try files.open(directory.pathOfFile("x"), writable: false) == nil)
    try files.remove(directory.pathOfFile("link"))
    #expect(try files.open(target, writable: false) != nil)
  }

  @Test func onlyPlainFilesAreOpened() throws {
    #expect(mkfifo(directory.pathOfFile("pipe"), 0o600) == 0)
    #expect(code { _ = try files.open(directory.pathOfFile("pipe"), writable: false) } == .unsupported)
    #expect(code { _ = try files.open("/dev/null", writable: true) } == .unsupported)
    #expect(code { _ = try files.open(directory.path, writable: false) } == .unsupported)
    #expect(try directory.openDescriptors() == 0)
  }

  @Test func aPathThatTheSystemWouldReadAsAnotherIsRefused() {
    for path in ["relative", "", "/tmp/a\0b"] {
      #expect(code { _ = try files.open(path, writable: false) } == .inputOutput)
      #expect(code { _ = try files.create(path) } == .inputOutput)
      #expect(code { try files.remove(path) } == .inputOutput)
      #expect(code { try files.rename(path, to: path) } == .inputOutput)
      #expect(code { _ = try files.lock(path) } == .inputOutput)
      #expect(code { try files.createDirectory(path) } == .inputOutput)
      #expect(code { _ = try files.entries(of: path) } == .inputOutput)
    }
  }

  @Test func renameReplacesTheOldFileAndOpenFilesFollowTheirContents() throws {
    let old = try files.create(directory.pathOfFile("a"))
    try write("old", to: old)
    let new = try files.create(directory.pathOfFile("a.tmp"))
    try write("new", to: new)
    try files.rename(directory.pathOfFile("a.tmp"), to: directory.pathOfFile("a"))
    try files.syncDirectory(directory.path)
    let found = try #require(try files.open(directory.pathOfFile("a"), writable: false))
    #expect(try found.read(at: 0, count: 9) == Data("new".utf8))
    #expect(try old.read(at: 0, count: 9) == Data("old".utf8))
    #expect(try files.entries(of: directory.path) == ["a"])
  }

  @Test func renameThatCannotBeAtomicOrDurableThrowsAndChangesNothing() throws {
    try files.createDirectory(directory.pathOfFile("d"))
    try files.create(directory.pathOfFile("a")).close()
    #expect(code { try files.rename(directory.pathOfFile("a"), to: directory.pathOfFile("d/a")) } == .unsupported)
    #expect(code { try files.rename(directory.pathOfFile("a"), to: directory.pathOfFile("d")) } == .inputOutput)
    #expect(code { try files.rename(directory.pathOfFile("b"), to: directory.pathOfFile("a")) } == .inputOutput)
    #expect(try files.entries(of: directory.path)?.sorted() == ["a", "d"])
    #expect(try files.entries(of: directory.pathOfFile("d")) == [])
  }

  @Test func entriesListsEveryNameOnce() throws {
    let names = (0..<500).map { "record-\($0)-é" }
    for name in names { try files.create(directory.pathOfFile(name)).close() }
    #expect(try files.entries(of: directory.path)?.sorted() == names.sorted())
  }

  @Test func directoriesMayBeReachedThroughLinks() throws {
    try files.createDirectory(directory.pathOfFile("real"))
    try FileManager.default.createSymbolicLink(atPath: directory.pathOfFile("link"), withDestinationPath: directory.pathOfFile("real"))
    try files.create(directory.pathOfFile("link/a")).close()
    try files.syncDirectory(directory.pathOfFile("link"))
    try files.createDirectory(directory.pathOfFile("link"))
    #expect(try files.entries(of: directory.pathOfFile("link")) == ["a"])
  }

  @Test func aDirectoryThatCannotBeMadeIsAFailure() {
    #expect(code { try files.createDirectory("/proc/larder/store") } != nil)
  }

  @Test func aClosedFileRefusesEveryCallAndClosesOnce() throws {
    let file = try files.create(directory.pathOfFile("a"))
    try file.close()
    // The descriptor's number is given out again at once: a second close would close this one.
    let next = try files.create(directory.pathOfFile("b"))
    try file.close()
    try write("still open", to: next)
    #expect(code { _ = try file.size() } == .inputOutput)
    #expect(code { _ = try file.mode() } == .inputOutput)
    #expect(code { try file.setMode(0o600) } == .inputOutput)
    #expect(code { _ = try file.read(at: 0, count: 1) } == .inputOutput)
    #expect(code { try file.sync() } == .inputOutput)
    #expect(code { try write("x", to: file) } == .inputOutput)
  }

  @Test func noCallLeaksADescriptor() throws {
    try files.create(directory.pathOfFile("file")).close()
    try FileManager.default.createSymbolicLink(atPath: directory.pathOfFile("link"), withDestinationPath: directory.pathOfFile("file"))
    for round in 0..<50 {
      _ = try files.create(directory.pathOfFile("new-\(round)"))  // released without close
      _ = try files.open(directory.pathOfFile("file"), writable: true)
      _ = try files.entries(of: directory.path)
      try files.syncDirectory(directory.path)
      try files.createDirectory(directory.pathOfFile("d\(round)/e"))
      _ = code { _ = try files.entries(of: directory.pathOfFile("file")) }
      _ = code { _ = try files.open(directory.pathOfFile("link"), writable: true) }
      _ = code { _ = try files.open(directory.path, writable: false) }
      let lock = try files.lock(directory.pathOfFile("lock"))
      _ = code { _ = try files.lock(directory.pathOfFile("lock")) }
      lock.release()
      _ = try files.lock(directory.pathOfFile("lock"))
    }
    #if os(Linux)
      #expect(try directory.openDescriptors() == 0)
      let kept = try files.open(directory.pathOfFile("file"), writable: true)
      #expect(try directory.openDescriptors() == 1)
      try kept?.close()
      #expect(try directory.openDescriptors() == 0)
    #endif
  }

  #if os(Linux)
    @Test func descriptorsAreNotInheritedByOtherPrograms() throws {
      let file = try files.create(directory.pathOfFile("a"))
      let again = try files.open(directory.pathOfFile("a"), writable: true)
      let lock = try files.lock(directory.pathOfFile("lock"))
      let descriptors = try directory.descriptors()
      #expect(descriptors.count == 3)
      for descriptor in descriptors { #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC == FD_CLOEXEC) }
      withExtendedLifetime((file, again, lock)) {}
    }
  #endif

  #if os(Linux)
    @Test func aFullDiskIsFullAndNamesTheFile() throws {
      let file = POSIXFile(path: "/dev/full", descriptor: Glibc.open("/dev/full", O_RDWR), isNew: false)
      let error = #expect(throws: RepositoryError.self) { try write("x", to: file, at: 0) }
      #expect(error?.code == .full)
      #expect(error?.file == "/dev/full")
      #expect(error?.underlying as? SystemCallError == SystemCallError(call: "pwrite", errorNumber: ENOSPC))
    }

    @Test func aRefusedSyncIsAFailure() throws {
      let file = POSIXFile(path: "/dev/full", descriptor: Glibc.open("/dev/full", O_RDWR), isNew: false)
      #expect(code { try file.sync() } == .inputOutput)
    }

    @Test func aRefusedSyncOfADirectoryIsAFailure() {
      // procfs refuses to sync its directories.
      #expect(code { try files.syncDirectory("/proc/self") } == .inputOutput)
      #expect(code { try files.createDirectory("/proc/self/fd") } == .inputOutput, "the parent of a directory that was there")
    }

    @Test func refusedAccessIsNeverAbsence() {
      // procfs refuses even root.
      #expect(code { try files.remove("/proc/version") } == .protectedDataUnavailable)
    }
  #endif

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func aFileWithoutPermissionIsProtectedAndNotAbsent() throws {
    let path = directory.pathOfFile("a")
    let file = try files.create(path)
    try file.setMode(0)
    #expect(code { _ = try files.open(path, writable: false) } == .protectedDataUnavailable)
  }
}
