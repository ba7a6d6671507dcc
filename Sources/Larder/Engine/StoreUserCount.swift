internal import Dispatch
internal import Synchronization

/// Counts the users of one store, and registers the store in this process until its files are released.
///
/// Users are repositories and ``Store`` objects. If the last repository is dropped without `close()`, the files are released a moment
/// later. Before the release, the executor may still be finishing a commit whose caller was resumed, or a migration may be within a batch.
/// An opening that finds a store without users therefore waits until the store's files are released, and does not fail with `.alreadyOpen`
/// at once.
final class StoreUserCount: Sendable {
  private static let register = Mutex<[String: [ObjectIdentifier: Entry]]>([:])
  /// Longest time that an opening waits for a store without users to release its files.
  private static let patience = Duration.seconds(5)
  /// Number of times that an opening waits for a store that still has a user.
  ///
  /// Several waits are needed, because several executor blocks, one after another, may hold a store that its users have released.
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
      // Only this store's entry is removed, because another store of the same name may be open by now.
      register[name]?[id] = nil
      if register[name]?.isEmpty == true { register[name] = nil }
    }
  }

  func begin() { users.withLock { $0 += 1 } }

  /// Ends one use of the store.
  ///
  /// - Returns: True if the ended use was the last use of the store.
  func end() -> Bool {
    users.withLock { users in
      users -= 1
      return users == 0
    }
  }

  // MARK: Opening again

  /// Opens a store, and tries again while a dropped store of the same name in this process releases its files.
  ///
  /// - Throws: The error of the closure `open`. `.alreadyOpen` if the store is in use, after ``passes`` waits of about 1 to 11 ms each.
  static func retryingWhileReleased<Result: Sendable>(
    _ name: String, _ open: () async throws(RepositoryError) -> Result
  ) async throws(RepositoryError) -> Result {
    let deadline = ContinuousClock.now + patience
    var passesLeft = passes
    while true {
      // The open stores of the name are listed before the attempt to open one. If a store were released between the attempt and a later
      // list, the list would lack that store. The error `.alreadyOpen` would then be thrown, although a second attempt would succeed.
      let found = register.withLock { $0[name]?.values.map(\.self) ?? [] }
      do throws(RepositoryError) {
        return try await open()
      } catch {
        guard error.code == .alreadyOpen, !found.isEmpty, ContinuousClock.now < deadline else { throw error }
        if hasUsers(found) {
          // A store with users is most likely in use, so the opening waits only a few times, in case the last user is being released.
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

  /// Waits until each executor has finished the blocks that are queued on it now, for at most 10 ms each.
  private static func wait(for executors: [StoreExecutor]) async {
    for executor in executors {
      let isOver = OneShot<Void>()
      executor.queue.async { isOver.resolve(()) }
      // The wait for an executor is limited, because a slow disk or another process's lock may block an executor.
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { isOver.resolve(()) }
      await isOver.value()
    }
    // A dispatch queue releases a block, and the store that the block captures, only after the block has run. `wait(for:)` therefore waits
    // 1 ms longer to let the queue release the store.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { continuation.resume() }
    }
  }
}

/// A use of a store by a repository or a ``Store`` object.
///
/// The use of the store ends when its `StoreUser` is released.
final class StoreUser: Sendable {
  private let core: StoreCore

  init(_ core: StoreCore) {
    self.core = core
    core.usage.begin()
  }

  deinit {
    // A migration holds the store during each batch. Without `cancelAll()`, a migration could keep the files locked long after the last
    // user of the store was released.
    if core.usage.end() { core.migrations.cancelAll() }
  }
}
