internal import Dispatch
internal import Synchronization

/// A count of a store's users, in a register of the stores that are open in this process.
///
/// Users are repositories and ``Store`` objects. A repository that is dropped without closing releases its files a moment later. The
/// executor may be at the end of a commit whose caller goes on already, and a migration may be in the middle of a batch. So an opening that
/// finds the store without users waits for that moment instead of failing with `.alreadyOpen`.
final class StoreUserCount: Sendable {
  private static let register = Mutex<[String: [ObjectIdentifier: Entry]]>([:])
  /// Longest wait for a store without users to release its files.
  private static let patience = Duration.seconds(5)
  /// Number of waits for the executor of a store that still has a user: one for each block that can hand on a dropped store.
  private static let passes = 4

  private struct Entry: Sendable {
    weak let usage: StoreUserCount?
  }

  private let name: String
  private let executor: StoreExecutor
  private let users = Mutex(0)

  init(name: String, executor: StoreExecutor) {
    self.name = name
    self.executor = executor
    let entry = Entry(usage: self)
    Self.register.withLock { $0[name, default: [:]][ObjectIdentifier(self)] = entry }
  }

  deinit {
    let id = ObjectIdentifier(self)
    Self.register.withLock { register in
      // Only this entry, because another store of the same name may be open by now.
      register[name]?[id] = nil
      if register[name]?.isEmpty == true { register[name] = nil }
    }
  }

  func begin() { users.withLock { $0 += 1 } }

  /// Ends one use of the store.
  /// - Returns: Whether it was the last.
  func end() -> Bool {
    users.withLock { users in
      users -= 1
      return users == 0
    }
  }

  // MARK: Opening again

  /// Opens a store, and tries again while a dropped store of the same name in this process releases its files.
  /// - Throws: The error of `open`. `.alreadyOpen` if the store is in use, after ``passes`` waits of 1 to 11 ms each.
  static func retryingWhileReleased<Result: Sendable>(
    _ name: String, _ open: () async throws(RepositoryError) -> Result
  ) async throws(RepositoryError) -> Result {
    let deadline = ContinuousClock.now + patience
    var passesLeft = passes
    while true {
      // Listed before the attempt. Listed after it, a store that was released in between would be missing, and the error would be thrown.
      let found = register.withLock { $0[name]?.values.map(\.self) ?? [] }
      do throws(RepositoryError) {
        return try await open()
      } catch {
        guard error.code == .alreadyOpen, !found.isEmpty, ContinuousClock.now < deadline else { throw error }
        if hasUsers(found) {
          // A store with users is most likely in use. Only a last user that is just being released is worth a wait.
          guard passesLeft > 0 else { throw error }
          passesLeft -= 1
        }
        await wait(for: found.compactMap { $0.usage?.executor })
      }
    }
  }

  private static func hasUsers(_ entries: [Entry]) -> Bool {
    entries.contains { entry in (entry.usage?.users.withLock { $0 } ?? 0) > 0 }
  }

  /// Waits until each executor has finished the work that is queued on it now, for at most 10 ms.
  private static func wait(for executors: [StoreExecutor]) async {
    for executor in executors {
      let isOver = OneShot<Void>()
      executor.queue.async { isOver.resolve(()) }
      // An executor may be blocked by a slow disk or a lock.
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { isOver.resolve(()) }
      await isOver.value()
    }
    // A queue releases a block, with the store that it captures, only after the block has run.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { continuation.resume() }
    }
  }
}

/// A use of a store by a repository or a ``Store``.
///
/// It ends when this object is released.
final class StoreUser: Sendable {
  private let core: StoreCore

  init(_ core: StoreCore) {
    self.core = core
    core.usage.begin()
  }

  deinit {
    // A migration holds the store during each batch, and could keep the files locked for long.
    if core.usage.end() { core.migrations.cancelAll() }
  }
}
