import Foundation
import Testing

@testable import Larder

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

@Suite("The lock of a shared store", .timeLimit(.minutes(15)))
struct POSIXSharedLockTests {
  private let directory: TemporaryDirectory
  private let files = POSIXFileSystem()
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.pathOfFile("spots.sqlite-lock")
  }

  private func take() throws(RepositoryError) -> any HeldSharedLock { try files.lockShared(path, waiting: .milliseconds(30)) }

  private func failure(_ take: () throws(RepositoryError) -> any HeldLock) -> RepositoryError.Code? {
    do throws(RepositoryError) {
      try take().release()
      return nil
    } catch {
      return error.code
    }
  }

  @Test func theFirstIsAloneAndLetsOthersInWhenItShares() throws {
    let first = try take()
    #expect(first.isAlone)
    #expect(failure { () throws(RepositoryError) in try take() } == .locked)
    try first.share()
    let second = try take()
    #expect(!first.isAlone && !second.isAlone)
    #expect(failure { () throws(RepositoryError) in try files.lock(path) } == .alreadyOpen)
    first.release()
    second.release()
    #expect(try files.entries(of: directory.path) == [])
  }

  @Test func whoeverIsLastCanBeAloneAgainAndRemovesTheFile() throws {
    let first = try take()
    try first.share()
    let second = try take()
    #expect(!first.reclaim())
    first.release()
    #expect(try files.entries(of: directory.path) == ["spots.sqlite-lock"])
    #expect(second.reclaim() && second.isAlone)
    #expect(failure { () throws(RepositoryError) in try take() } == .locked)
    second.release()
    second.release()
    #expect(try files.entries(of: directory.path) == [])
  }

  @Test func aFullDiskLetsOneInWhoIsAlone() throws {
    // What a crash has left says "shared": it must not let anybody in beside the one who cannot write.
    try Data("1 shared\n".utf8).write(to: URL(fileURLWithPath: path))
    let first = try POSIXSharedLock.acquire(path, waiting: .zero) { _, file in ftruncate(file.descriptor, 0) == 0 ? ENOSPC : errno }
    #expect(first.isAlone)
    #expect(failure { () throws(RepositoryError) in try take() } == .locked)
    try first.share()
    try take().release()
    first.release()
    let failing = failure { () throws(RepositoryError) in
      try POSIXSharedLock.acquire(path, waiting: .zero) { _, file in
        _ = file.write(.shared)
        return EIO
      }
    }
    #expect(failing == .inputOutput)
  }

  @Test func anExclusiveLockKeepsSharersOutAndIsNotWaitedFor() throws {
    let exclusive = try files.lock(path)
    #expect(failure { () throws(RepositoryError) in try take() } == .alreadyOpen)
    exclusive.release()
    #expect(failure { () throws(RepositoryError) in try take() } == nil)
  }

  @Test func theNextOneOfAFileThatACrashHasLeftIsAlone() throws {
    for text in ["17 shared\n", "17 opening\n", "17 closing\n", "17\n", "", "17 sha"] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))  // a fixture needs no durability
      let lock = try take()
      #expect(lock.isAlone, "\(text)")
      lock.release()
    }
    let dropped = try? take()
    try dropped?.share()
    #expect(dropped != nil)
  }

  @Test func aLockThatIsDroppedIsGivenUp() throws {
    do { try take().share() }
    let next = try files.lock(path)
    next.release()
  }

  @Test func manyWhoComeAndGoAreNeverAloneTogether() async throws {
    let path = path
    let (alone, shared) = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for _ in 0..<8 {
        group.addTask {
          var counts = (0, 0)
          for _ in 0..<100 {
            let lock = try POSIXFileSystem().lockShared(path, waiting: .seconds(30))
            if lock.isAlone {
              counts.0 += 1
              // Whoever is alone is alone with the name of this file as well.
              let mark = try POSIXFileSystem().create(path + "-mark")
              try mark.close()
              try POSIXFileSystem().remove(path + "-mark")
              try lock.share()
            } else {
              counts.1 += 1
            }
            lock.release()
          }
          return counts
        }
      }
      return try await group.reduce((0, 0)) { ($0.0 + $1.0, $0.1 + $1.1) }
    }
    #expect(alone + shared == 800 && alone > 0)
    #expect(try files.entries(of: directory.path) == [])
  }
}
