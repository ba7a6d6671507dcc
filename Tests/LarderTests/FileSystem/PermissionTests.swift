import Foundation
import Larder
import Testing

// The umask belongs to the process: these tests run one after another, and other suites do not depend on it.
@Suite("Permissions", .serialized)
struct PermissionTests {
  private let directory: TemporaryDirectory
  private let files = POSIXFileSystem()

  init() throws { directory = try TemporaryDirectory() }

  private func mode(of path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int)
  }

  private func withUmask(_ mask: mode_t, _ body: () throws -> Void) rethrows {
    let previous = umask(mask)
    defer { umask(previous) }
    try body()
  }

  @Test(arguments: [0o000, 0o022, 0o077] as [mode_t])
  func filesAndDirectoriesAreTheirOwnersWhateverTheUmask(mask: mode_t) throws {
    try withUmask(mask) {
      let file = try files.create(directory.pathOfFile("a"))
      #expect(try file.mode() == 0o600)
      try files.createDirectory(directory.pathOfFile("one"))
      let lock = try files.lock(directory.pathOfFile("lock"))
      #expect(try mode(of: directory.pathOfFile("a")) == 0o600)
      #expect(try mode(of: directory.pathOfFile("one")) == 0o700)
      #expect(try mode(of: directory.pathOfFile("lock")) == 0o600)
      lock.release()
    }
  }

  @Test(arguments: [0o000, 0o022, 0o077] as [mode_t])
  func missingParentsAreMadeWithTheSameMode(mask: mode_t) throws {
    try withUmask(mask) {
      try files.createDirectory(directory.pathOfFile("one/two/three"))
      for path in ["one", "one/two", "one/two/three"] { #expect(try mode(of: directory.pathOfFile(path)) == 0o700) }
      try files.createDirectory(directory.pathOfFile("one/two/three"))
    }
  }

  // For root only: tests that run beside this one would make directories that nobody else can use.
  @Test(.enabled(if: geteuid() == 0), arguments: [0o200, 0o400, 0o777] as [mode_t])
  func aUmaskAgainstTheOwnerDoesNotMakeAFileUnusable(mask: mode_t) throws {
    try withUmask(mask) {
      try files.createDirectory(directory.pathOfFile("one/two"))
      for path in ["one", "one/two"] { #expect(try mode(of: directory.pathOfFile(path)) == 0o700) }
      let file = try files.create(directory.pathOfFile("a"))
      #expect(try file.mode() == 0o600)
      let lock = try files.lock(directory.pathOfFile("lock"))
      #expect(try mode(of: directory.pathOfFile("lock")) == 0o600)
      lock.release()
    }
  }

  @Test func aDirectoryThatIsThereKeepsItsMode() throws {
    try files.createDirectory(directory.pathOfFile("d"))
    #expect(chmod(directory.pathOfFile("d"), 0o750) == 0)
    try files.createDirectory(directory.pathOfFile("d"))
    #expect(try mode(of: directory.pathOfFile("d")) == 0o750)
  }

  @Test func theModeThatWasSetIsTheModeOfTheFile() throws {
    let file = try files.create(directory.pathOfFile("a"))
    try file.setMode(0o640)
    try file.sync()
    #expect(try file.mode() == 0o640)
    #expect(try mode(of: directory.pathOfFile("a")) == 0o640)
  }
}
