import Foundation
import Larder
import TestSupport
import Testing

/// A second process, and users without the right to read or write.
@Suite("The world: other processes and users", .serialized, .timeLimit(.minutes(15))) struct ProcessTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(inMemory: !Torture.isOn) }

  /// Makes a store of two records that a `LedgerWriter` can open, too.
  private func makeStore(_ backing: Backing) throws -> URL {
    let file = directory.file(backing.fileName)
    let store = try backing.open(file)
    for commit in 1...2 as ClosedRange<UInt64> { try store.save(commit) }
    try store.backend.close()
    return file
  }

  @Test(arguments: Backing.allCases) func whatAnotherProcessHasOpenIsLockedByEveryPath(_ backing: Backing) throws {
    let file = try makeStore(backing)
    let link = directory.file("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: directory.url)
    var count = 0
    for hasLock in [true, false] {
      let holder = try LedgerWriterRun(["hold", file.path])
      #expect(holder.firstLine() == "open")
      if !hasLock { try FileManager.default.removeItem(atPath: file.path + "-lock") }
      for path in [file, link.appendingPathComponent(backing.fileName)] {
        for access in backing.writers {
          #expect(backing.answer(path, access) == .refused(.locked), "\(backing), \(access), \(path.lastPathComponent), lock \(hasLock)")
          count += 1
        }
        #expect(backing.answer(path, .readOnly) == .everything(["spots/1", "spots/2"]), "\(backing), lock \(hasLock)")
      }
      holder.end()
      #expect(backing.answer(file) == .everything(["spots/1", "spots/2"]), "\(backing), afterwards")
    }
    print("figures: situations \(count + 4) (stores of \(backing) that another process has open)")
  }

  /// The modes of the file and of its directory, which another user meets.
  private static let rights: [(what: String, file: mode_t, directory: mode_t)] = [
    ("no right to the file", 0o000, 0o777),
    ("a file to be read only", 0o444, 0o777),
    ("no right to the directory", 0o666, 0o000),
    ("a directory to be read only", 0o666, 0o555),
    ("a directory to be passed only", 0o666, 0o111),
  ]

  @Test(
    .enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "only root may become another user"),
    arguments: Backing.allCases)
  func aUserWithoutTheRightIsToldSoAndNothingChanges(_ backing: Backing) throws {
    // A copy: the folder of the build may be closed to others.
    let programs = try TemporaryDirectory()
    let program = programs.file("LedgerWriter").path
    try FileManager.default.copyItem(atPath: LedgerWriterRun.program, toPath: program)
    #expect(chmod(program, 0o755) == 0 && chmod(programs.path, 0o755) == 0)
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    let trial = try LedgerWriterRun(user + [program, "hold", "/nonexistent/a.json"], "/usr/bin/setpriv")
    #expect(trial.firstLine().hasPrefix("refused"), "another user cannot start \(program)")
    trial.end()
    for row in Self.rights {
      try directory.clear()
      let home = directory.url.appendingPathComponent("home")
      try FileManager.default.createDirectory(at: home, withIntermediateDirectories: false)
      let file = home.appendingPathComponent(backing.fileName)
      let store = try backing.open(file)
      try store.save(1)
      try store.backend.close()
      let before = try Data(contentsOf: file)
      #expect(chmod(file.path, row.file) == 0 && chmod(home.path, row.directory) == 0 && chmod(directory.path, 0o755) == 0)
      let run = try LedgerWriterRun(user + [program, "hold", file.path], "/usr/bin/setpriv")
      // A document is replaced, which is a right to the directory.
      let answer = backing == .json && row.file == 0o444 ? "open" : "refused protectedDataUnavailable"
      #expect(run.firstLine() == answer, "\(backing), \(row.what)")
      run.end()
      #expect(chmod(home.path, 0o700) == 0 && chmod(file.path, 0o600) == 0)
      #expect(try Data(contentsOf: file) == before, "\(backing), \(row.what)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: home.path) == [backing.fileName], "\(backing), \(row.what)")
      #expect(backing.answer(file) == .everything(["spots/1"]), "\(backing), \(row.what)")
    }
    print("figures: situations \(Self.rights.count) (rights to stores of \(backing))")
  }

  @Test(arguments: Backing.allCases) func tenThousandOtherFilesDoNotMatter(_ backing: Backing) throws {
    for number in 0..<10_000 {
      let name = number % 10 == 0 ? "\(backing.fileName)-\(number)" : "file \(number)"
      close(open(directory.path + "/" + name, O_CREAT | O_WRONLY, 0o600))
    }
    let file = try makeStore(backing)
    for access in backing.accesses { #expect(backing.answer(file, access) == .everything(["spots/1", "spots/2"]), "\(access)") }
    #expect(try directory.names.count == 10_001)
  }

  @Test(arguments: Backing.allCases, [-365 * 86_400.0, 365 * 86_400.0]) func datesOfFilesDoNotMatter(
    _ backing: Backing, _ shift: Double
  ) throws {
    let file = directory.file(backing.fileName)
    let store = try backing.open(file)
    for commit in 1...2 as ClosedRange<UInt64> { try store.save(commit) }
    for name in try directory.names {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: shift)], ofItemAtPath: directory.pathOfFile(name))
    }
    #expect(backing.answer(file, .readOnly) == .everything(["spots/1", "spots/2"]))
    try store.save(3)
    #expect(backing.answer(file, .readOnly) == .everything(["spots/1", "spots/2", "spots/3"]))
    store.backend.abandon()
    #expect(backing.answer(file) == .everything(["spots/1", "spots/2", "spots/3"]))
  }
}

/// A run of the program `LedgerWriter`, which the test bundle is built beside.
private final class LedgerWriterRun {
  static let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("LedgerWriter")
    .path

  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init(_ arguments: [String], _ program: String = LedgerWriterRun.program) throws {
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit { end() }

  /// Waits for the first line of what it says; empty when it ends without one.
  func firstLine() -> String {
    var text = Data()
    while !text.contains(0x0A) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text.append(more)
    }
    return String(decoding: text.prefix { $0 != 0x0A }, as: UTF8.self)
  }

  /// Lets it end, and waits for that.
  func end() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
