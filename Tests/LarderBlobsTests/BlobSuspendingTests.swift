import Dispatch
import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder
@testable import LarderBlobs

/// A blob store that gives up its lock for a while.
///
/// Another store of this process stands for another process.
@Suite("A suspended blob store", .timeLimit(.minutes(15)))
struct BlobSuspendingTests {
  /// The number of changes that wait in a suspended store.
  private func waiting(_ blobs: BlobStore) -> Int { blobs.index.core.waitingWriteCount }

  /// Waits until the system lists a lock: a list that is read while others change it may lack some.
  private func untilLocked(_ directory: TemporaryDirectory) async throws {
    try await until { (try? directory.locks().isEmpty) == false }
  }

  // MARK: Suspended

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/locks"), "the system lists no locks"))
  func aSuspendedStoreHoldsNoLockWhateverWriterIsOpen() async throws {
    let directory = try TemporaryDirectory()
    let blobs = try await BlobStore(directory: directory.url)
    for number in 0..<20 { try await blobs.save("\(number)", for: "\(number)") }
    let writer = try await blobs.writer(for: "open")
    try await writer.write(Data("first".utf8))
    try await untilLocked(directory)
    let clock = ContinuousClock.now
    await blobs.suspend()
    print("figures: blob store suspended in \(clock.duration(to: .now))")
    #expect(try directory.locks() == [])
    await blobs.suspend()
    try await blobs.resume()
    try await blobs.resume()
    try await untilLocked(directory)
    try await writer.write(Data(" second".utf8))
    try await writer.finish()
    blobs.removeFromMemory()
    #expect(try await blobs.blob(for: "open")?.data == Data("first second".utf8))
    try await blobs.close()
    #expect(try directory.locks() == [])
  }

  /// A change that waits for the disk is waited for, and those behind it wait until the store is resumed.
  @Test func changesBehindTheOneUnderWayAreNotWaitedFor() async throws {
    let files = SimulatedFileSystem()
    let gate = DispatchSemaphore(value: 0)
    let (isHolding, isHeld) = (Flag(), Flag())
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      guard isHolding.isSet, !isHeld.isSet, operation == "sync", path.contains("-journal") else { return }
      isHeld.set()
      gate.wait()
    }
    let shelf = try await BlobShelf(on: files, through: WatchedFiles(base: files, look: look))
    let blobs = shelf.blobs
    try await blobs.save("0", for: "0")
    isHolding.set()
    let first = Task { try await blobs.save("1", for: "1") }
    try await until { isHeld.isSet }
    let suspending = Task { await blobs.suspend() }
    try await until { blobs.suspension.isActive }
    let others = (2..<12).map { number in Task { try await blobs.save("\(number)", for: "\(number)") } }
    gate.signal()
    await suspending.value
    try await first.value
    #expect(blobs.persistedKeys == ["0", "1"])
    let second = try await BlobShelf(on: files)
    #expect(second.blobs.openReport.isClean)
    try await second.close()
    try await until { waiting(blobs) == 10 }
    try await blobs.resume()
    for other in others { try await other.value }
    #expect(blobs.persistedKeys.count == 12)
    try await blobs.close()
  }

  @Test func readsGoOnAndChangesWaitWithoutTouchingAFile() async throws {
    let files = SimulatedFileSystem()
    let isWatching = Flag()
    let touched = Reports()
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      if isWatching.isSet, !["open", "read"].contains(operation) { touched.add(RepositoryError(.unsupported, "\(operation) \(path)")) }
    }
    let shelf = try await BlobShelf(on: files, through: WatchedFiles(base: files, look: look))
    let blobs = shelf.blobs
    for key in ["a", "b", "c"] { try await blobs.save("old \(key)", for: key) }
    let begun = try await blobs.writer(for: "begun")
    try await begun.write(Data("begun".utf8))
    var dropped: BlobWriter? = try await blobs.writer(for: "dropped")
    try await dropped?.write(Data("dropped".utf8))
    await blobs.suspend()
    isWatching.set()
    #expect(try await blobs.blob(for: "a")?.origin == .memory)
    blobs.removeFromMemory()
    #expect(try await blobs.blob(for: "a")?.origin == .disk)
    #expect(try blobs.info(for: "b")?.size == 5 && blobs.persistedKeys == ["a", "b", "c"])
    #expect(await blobs.usage.diskCount == 3)
    let save = Task { try await blobs.save("new a", for: "a") }
    let remove = Task { try await blobs.remove("b") }
    let finish = Task { try await begun.finish() }
    let cancelled = Task { try await blobs.save("x", for: "x") }
    dropped = nil
    try await until { waiting(blobs) == 4 }
    cancelled.cancel()
    #expect(await code(of: cancelled) == .cancelled)
    #expect(try await shelf.stored("a") == "old a")
    #expect(touched.text == "[]")
    try await blobs.resume()
    try await save.value
    #expect(try await remove.value)
    try await finish.value
    #expect(try await shelf.stored("a") == "new a")
    #expect(try await shelf.stored("begun") == "begun")
    #expect(blobs.persistedKeys == ["a", "begun", "c"] && shelf.blobPaths.count == 3)
    #expect(shelf.reports.codes.isEmpty)
    await blobs.suspend()
    let clear = Task { try await blobs.clear() }
    try await until { waiting(blobs) == 1 }
    try await blobs.resume()
    try await clear.value
    #expect(blobs.persistedKeys.isEmpty && shelf.blobPaths.isEmpty)
    try await blobs.close()
  }

  @Test(arguments: [Duration.zero, .milliseconds(20)])
  func aChangeGivesUpAtItsDeadlineAndLeavesNothing(timeout: Duration) async throws {
    let shelf = try await BlobShelf(suspensionTimeout: timeout)
    let blobs = shelf.blobs
    try await blobs.save("A", for: "a")
    let (begun, given) = (try await blobs.writer(for: "b"), try await blobs.writer(for: "c"))
    for writer in [begun, given] { try await writer.write(Data("B".utf8)) }
    let finished = try await blobs.writer(for: "d")
    await blobs.suspend()
    let paths = shelf.files.paths
    #expect(await code { try await blobs.save("B", for: "a") } == .suspended)
    #expect(await code { try await blobs.remove("a") } == .suspended)
    #expect(await code { try await blobs.clear() } == .suspended)
    #expect(await code { try await begun.write(Data("B".utf8)) } == .suspended)
    #expect(await code { try await begun.finish() } == .suspended)
    #expect(await code { try await finished.finish() } == .suspended)
    await given.abort()
    #expect(shelf.files.paths == paths)
    try await blobs.resume()
    #expect(await code { try await begun.write(Data("B".utf8)) } == .suspended)
    #expect(try await shelf.stored("a") == "A")
    #expect(shelf.blobPaths.count == 1)
    try await blobs.save("B", for: "b")
    #expect(try await shelf.stored("b") == "B")
    try await blobs.close()
  }

  enum Damage: CaseIterable, Sendable { case bytes, gone, directory }

  @Test(arguments: Damage.allCases)
  func damageIsAMissThatIsLeftAlone(_ damage: Damage) async throws {
    let directory = try TemporaryDirectory()
    let reports = Reports()
    let blobs = try await BlobStore(directory: directory.url) { reports.add($0) }
    try await blobs.save("A", for: "a")
    try await blobs.save("B", for: "b")
    blobs.removeFromMemory()
    await blobs.suspend()
    let file = directory.file(try BlobStore.id(of: "a"))
    if damage == .bytes { try Data("B".utf8).write(to: file) } else { try FileManager.default.removeItem(at: file) }
    if damage == .directory { try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false) }
    let names = try directory.names
    // Nor does it wait for a change, or for a resume under way.
    let changes = await blobs.changes
    await changes.acquire()
    #expect(try await blobs.blob(for: "a") == nil)
    changes.release()
    #expect(try await blobs.blob(for: "b")?.origin == .disk)
    #expect(try directory.names == names && blobs.persistedKeys == ["a", "b"] && reports.codes.isEmpty)
    try await blobs.resume()
    #expect(try await blobs.blob(for: "a") == nil)
    #expect(reports.codes.count == 1 && blobs.persistedKeys == ["b"])
    try await blobs.close()
  }

  @Test func aStoreWhoseSyncHasFailedIsSuspendedForGood() async throws {
    let files = SimulatedFileSystem()
    let isFailing = Flag()
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      if isFailing.isSet, operation == "sync", path.contains("-journal") { throw RepositoryError(.inputOutput, "no sync") }
    }
    let shelf = try await BlobShelf(on: files, through: WatchedFiles(base: files, look: look))
    let blobs = shelf.blobs
    try await blobs.save("A", for: "a")
    isFailing.set()
    #expect(await code { try await blobs.save("B", for: "b") } == .outcomeUnknown)
    await blobs.suspend()
    let second = try await BlobShelf(on: files)
    #expect(await code { try await blobs.save("B", for: "b") } == .poisoned)
    #expect(await code { try await blobs.resume() } == .poisoned)
    #expect(try await shelf.stored("a") == "A")
    try await blobs.close()
    try await second.close()
  }

  // MARK: Closed

  @Test func closingASuspendedStoreTouchesNothingOfItsSuccessor() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    try await blobs.save("A", for: "a")
    let old = try await blobs.writer(for: "b")
    try await old.write(Data("old".utf8))
    await blobs.suspend()
    let waitingSave = Task { try await blobs.save("x", for: "x") }
    try await until { waiting(blobs) == 1 }
    let next = try await BlobShelf(on: shelf.files)
    #expect(next.blobs.openReport.unfinished.count == 1)
    let new = try await next.blobs.writer(for: "b")
    try await new.write(Data("new".utf8))
    let paths = shelf.files.paths
    try await blobs.close()
    try await blobs.close()
    await blobs.suspend()
    #expect(await code(of: waitingSave) == .suspended)
    #expect(await code { try await old.write(Data("old".utf8)) } == .closed)
    #expect(await code { try await old.finish() } == .closed)
    #expect(await code { try await blobs.save("x", for: "x") } == .closed)
    #expect(await code { try await blobs.remove("a") } == .closed)
    #expect(await code { try await blobs.clear() } == .closed)
    #expect(await code { _ = try await blobs.blob(for: "a") } == .closed)
    #expect(await code { try await blobs.resume() } == .closed)
    #expect(shelf.files.paths == paths)
    try await new.finish()
    #expect(try await next.stored("b") == "new")
    try await next.close()
  }

  @Test func aStoreThatIsClosedOrDroppedWhileSuspendedIsWholeWhenOpened() async throws {
    let files = SimulatedFileSystem()
    for closes in [true, false] {
      let shelf = try await BlobShelf(on: files)
      try await shelf.blobs.save("A", for: closes ? "a" : "b")
      let writer = try await shelf.blobs.writer(for: "c")
      try await writer.write(Data("C".utf8))
      await shelf.blobs.suspend()
      if closes { try await shelf.close() }
      #expect(shelf.blobPaths.count { $0.hasSuffix("-tmp") } == 1)
    }
    let shelf = try await BlobShelf(on: files)
    #expect(shelf.blobs.openReport.unfinished.count == 1)
    #expect(shelf.blobs.persistedKeys == ["a", "b"] && shelf.blobPaths.count == 2)
    try await shelf.close()
  }

  /// Calls of all kinds at once, in no order: each of them ends, and what was stored is there.
  @Test func suspendingBesideEverythingElseEnds() async throws {
    for round in 0..<Torture.count(20, full: 400) {
      let shelf = try await BlobShelf()
      let blobs = shelf.blobs
      let failures = Reports()
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<8 {
          group.addTask { await blobs.suspend() }
          group.addTask {
            do throws(RepositoryError) { try await blobs.resume() } catch { failures.add(error) }
          }
          group.addTask {
            do throws(RepositoryError) { try await blobs.save("\(number)", for: "\(number)") } catch { failures.add(error) }
          }
          group.addTask { _ = try? await blobs.blob(for: "\(number)") }
        }
        if round % 2 == 1 { group.addTask { try? await blobs.close() } }
        // A save that waits is resumed, or refused by the closing.
        group.addTask {
          while failures.codes.isEmpty, blobs.persistedKeys.count < 8 {
            do throws(RepositoryError) { try await blobs.resume() } catch { failures.add(error) }
            await Task.yield()
          }
        }
        await group.waitForAll()
      }
      if round % 2 == 0 {
        #expect(failures.codes.isEmpty && blobs.persistedKeys.count == 8)
        try await blobs.resume()
        for number in 0..<8 { #expect(try await shelf.stored("\(number)") == "\(number)") }
      } else {
        #expect(failures.codes.allSatisfy { [.closed, .suspended].contains($0) })
      }
      try await blobs.close()
    }
  }
}
