import Foundation
import Larder
import Synchronization
import Testing

@testable import class Larder.POSIXLock

@Suite("The lock of a store", .timeLimit(.minutes(15)))
struct POSIXLockTests {
  private let directory: TemporaryDirectory
  private let files = POSIXFileSystem()
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.pathOfFile("spots.json-lock")
  }

  private func failure(_ path: String) -> RepositoryError? {
    do {
      try files.lock(path).release()
      return nil
    } catch {
      return error
    }
  }

  @Test func aSecondLockInOneProcessIsAlreadyOpen() throws {
    let lock = try files.lock(path)
    #expect(failure(path)?.code == .alreadyOpen)
    #expect(failure(path)?.file == path)
    lock.release()
    #expect(failure(path) == nil)
  }

  @Test func anotherNameOfTheSameLockFileIsAlreadyOpenToo() throws {
    let lock = try files.lock(path)
    try FileManager.default.linkItem(atPath: path, toPath: directory.pathOfFile("hard-link"))
    #expect(failure(directory.pathOfFile("hard-link"))?.code == .alreadyOpen)
    let detour = "../" + (directory.path as NSString).lastPathComponent + "/spots.json-lock"
    #expect(failure(directory.pathOfFile(detour))?.code == .alreadyOpen)
    lock.release()
  }

  @Test func twoStoresAreLockedIndependently() throws {
    let one = try files.lock(path)
    let two = try files.lock(directory.pathOfFile("other-lock"))
    one.release()
    #expect(failure(directory.pathOfFile("other-lock"))?.code == .alreadyOpen)
    two.release()
  }

  @Test func releasingRemovesTheFileOnceAndDroppingTheLockReleasesIt() throws {
    let lock = try files.lock(path)
    #expect(try files.entries(of: directory.path) == ["spots.json-lock"])
    lock.release()
    #expect(try files.entries(of: directory.path) == [])
    let next = try files.lock(path)
    lock.release()  // the second call must not touch the next holder's file
    #expect(try files.entries(of: directory.path) == ["spots.json-lock"])
    #expect(failure(path)?.code == .alreadyOpen)
    withExtendedLifetime(next) {}

    _ = try files.lock(directory.pathOfFile("dropped"))
    #expect(failure(directory.pathOfFile("dropped")) == nil)
  }

  @Test func theFileNamesItsHolder() throws {
    let lock = try files.lock(path)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "\(getpid())\n")
    lock.release()
  }

  @Test func aLockFileLeftByAKilledProcessIsTakenOver() throws {
    try Data("123456789012345\n".utf8).write(to: URL(fileURLWithPath: path))
    let lock = try files.lock(path)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "\(getpid())\n")
    lock.release()
  }

  @Test func aFileRemovedBetweenOpeningAndLockingIsNotTheLock() throws {
    var rounds = 0
    let lock = try POSIXLock.acquire(path) {
      rounds += 1
      if rounds < 3 { unlink(path) }  // the releasing holder
      if rounds == 1 { _ = FileManager.default.createFile(atPath: path, contents: nil) }  // and the next one
    }
    #expect(rounds == 3)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "\(getpid())\n")
    #expect(failure(path)?.code == .alreadyOpen)
    lock.release()
    #expect(try directory.descriptors().count == 0)
  }

  @Test func releasingLeavesAFileThatIsNotItsOwn() throws {
    let lock = try files.lock(path)
    unlink(path)
    _ = FileManager.default.createFile(atPath: path, contents: Data("theirs".utf8))
    lock.release()
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "theirs")
  }

  @Test func manyThreadsNeverHoldItTogether() async throws {
    let path = path
    let taken = await withTaskGroup(of: Int.self) { group in
      let holders = Counter()
      for _ in 0..<8 {
        group.addTask {
          var taken = 0
          for _ in 0..<200 {
            do {
              let lock = try POSIXFileSystem().lock(path)
              #expect(holders.add(1) == 1)
              taken += 1
              _ = holders.add(-1)
              lock.release()
            } catch {
              #expect((error as? RepositoryError)?.code == .alreadyOpen)
            }
          }
          return taken
        }
      }
      return await group.reduce(0, +)
    }
    #expect(taken > 0)
  }
}

#if os(Linux)
  /// The `flock` of util-linux is the second process.
  @Suite("The lock between processes", .enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/flock")), .timeLimit(.minutes(15)))
  struct POSIXLockProcessTests {
    private let directory: TemporaryDirectory
    private let files = POSIXFileSystem()
    private let path: String

    init() throws {
      directory = try TemporaryDirectory()
      path = directory.pathOfFile("spots.json-lock")
    }

    @Test func aLockHeldByAnotherProcessIsLockedUntilThatProcessIsKilled() throws {
      // -o: the lock is held by `flock` itself and not by the command it starts, so that killing it frees the lock.
      let holder = try Command("/usr/bin/flock", ["-n", "-o", path, "sh", "-c", "echo held; exec cat"])
      #expect(holder.nextOutput() == "held\n")
      let unnamed = #expect(throws: RepositoryError.self) { try files.lock(path).release() }
      #expect(unnamed?.code == .locked)
      #expect(unnamed?.file == path)

      try Data("4242\n".utf8).write(to: URL(fileURLWithPath: path))  // not atomically: it stays the same file
      let named = #expect(throws: RepositoryError.self) { try files.lock(path).release() }
      #expect(named?.code == .locked)
      #expect(named?.message.contains("4242") == true)
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "4242\n")

      holder.kill()
      try files.lock(path).release()
      #expect(try directory.descriptors().count == 0)
    }

    @Test func aLockHeldHereKeepsAnotherProcessOut() throws {
      let lock = try files.lock(path)
      #expect(try Command.run("/usr/bin/flock", ["-n", "-E", "77", path, "true"]).status == 77)
      #expect(try Command.run("/usr/bin/flock", ["-n", "-s", "-E", "77", path, "true"]).status == 77)
      lock.release()
      #expect(try Command.run("/usr/bin/flock", ["-n", "-E", "77", path, "true"]).status == 0)
    }
  }
#endif

/// A number that threads share.
private final class Counter: Sendable {
  private let number = Mutex(0)
  func add(_ amount: Int) -> Int {
    number.withLock {
      $0 += amount
      return $0
    }
  }
}
