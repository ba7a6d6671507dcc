internal import Dispatch
internal import Synchronization

/// The count of a store's users, in a register of the stores that are open in this process.
///
/// A repository that is dropped without closing releases its files a moment later: the executor may be at the end of a
/// commit whose caller goes on already, and a migration may be in the middle of a batch. So an opening that finds the
/// store without users waits for that moment, and does not fail with `.alreadyOpen`.
final class StoreUsage: Sendable {
  private static let register = Mutex<[String: [ObjectIdentifier: Entry]]>([:])
  /// The longest wait for a store without users to release its files.
  private static let patience = Duration.seconds(5)
  /// The number of waits for the executor of a store that still has a user: as often as it can hand on one drop.
  private static let passes = 4

  private struct Entry: Sendable {
    weak let usage: StoreUsage?
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
      register[name]?[id] = nil
      if register[name]?.isEmpty == true { register[name] = nil }
    }
  }

  func begin() { users.withLock { $0 += 1 } }

  /// Ends one use.
  /// - Returns: Whether it was the last.
  func end() -> Bool {
    users.withLock { users in
      users -= 1
      return users == 0
    }
  }

  // MARK: Opening again

  /// Opens a store, and tries again while one of the same name that was dropped in this process releases its files.
  /// - Throws: what `open` throws; `.alreadyOpen` when the store is in use, after ``passes`` waits of 1 to 11 ms each.
  static func retryingWhileReleased<Result: Sendable>(
    _ name: String, _ open: () async throws(RepositoryError) -> Result
  ) async throws(RepositoryError) -> Result {
    let deadline = ContinuousClock.now + patience
    var passesLeft = passes
    while true {
      // Listed before trying: those that are gone by then hold nothing any more.
      let found = register.withLock { $0[name]?.values.map(\.self) ?? [] }
      do throws(RepositoryError) {
        return try await open()
      } catch {
        guard error.code == .alreadyOpen, !found.isEmpty, ContinuousClock.now < deadline else { throw error }
        if hasUsers(found) {
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

  /// Waits until the executors have done what they have to do now, or for a hundredth of a second.
  private static func wait(for executors: [StoreExecutor]) async {
    for executor in executors {
      let isOver = OneShot<Void>()
      executor.queue.async { isOver.resolve(()) }
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { isOver.resolve(()) }
      await isOver.value()
    }
    // A queue releases its blocks only after they ran.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { continuation.resume() }
    }
  }
}

/// A use of a store by a repository or a ``Store``: it ends with the object.
final class StoreUse: Sendable {
  private let core: StoreCore

  init(_ core: StoreCore) {
    self.core = core
    core.usage.begin()
  }

  deinit {
    if core.usage.end() { core.migrations.cancelAll() }
  }
}
