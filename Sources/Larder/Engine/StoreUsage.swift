internal import Dispatch
internal import Synchronization

/// Keeps account of who uses a store, and tells when the store has let go of its files.
///
/// A repository that is dropped without closing lets go a moment later: the executor may be at the end of a commit whose caller goes on
/// already, and a migration may be in the middle of a batch. Who opens the store again at once waits for that moment instead of being told
/// that the store is open.
final class StoreUsage: Sendable {
  private static let holders = Mutex<[String: [ObjectIdentifier: Entry]]>([:])
  /// How long a store that nobody uses any more is waited for.
  private static let patience = Duration.seconds(5)
  /// How often the executor of a store is waited for that still has a user: as often as one drop can be handed on by it.
  private static let passes = 4

  private struct Entry: Sendable {
    weak let holder: StoreUsage?
  }

  private let name: String
  private let executor: StoreExecutor
  private let users = Mutex(0)

  init(name: String, executor: StoreExecutor) {
    self.name = name
    self.executor = executor
    let entry = Entry(holder: self)
    Self.holders.withLock { $0[name, default: [:]][ObjectIdentifier(self)] = entry }
  }

  deinit {
    let id = ObjectIdentifier(self)
    Self.holders.withLock { holders in
      holders[name]?[id] = nil
      if holders[name]?.isEmpty == true { holders[name] = nil }
    }
  }

  func begin() { users.withLock { $0 += 1 } }

  /// Ends one use; whether it was the last.
  func end() -> Bool {
    users.withLock { users in
      users -= 1
      return users == 0
    }
  }

  // MARK: Opening again

  /// Opens a store, and tries again while one of the same name that was dropped in this process lets go of it.
  /// - Throws: what `open` throws; `.alreadyOpen` at once when the store is in use.
  static func whileDroppedStoresLetGo<Result: Sendable>(
    of name: String, _ open: () async throws(RepositoryError) -> Result
  ) async throws(RepositoryError) -> Result {
    let deadline = ContinuousClock.now + patience
    var passesLeft = passes
    while true {
      // Looked at before trying: those that are gone by then hold nothing any more.
      let found = holders.withLock { $0[name]?.values.map(\.self) ?? [] }
      do throws(RepositoryError) {
        return try await open()
      } catch {
        guard error.code == .alreadyOpen, !found.isEmpty, ContinuousClock.now < deadline else { throw error }
        if isUsed(found) {
          guard passesLeft > 0 else { throw error }
          passesLeft -= 1
        }
        await wait(for: found.compactMap { $0.holder?.executor })
      }
    }
  }

  private static func isUsed(_ entries: [Entry]) -> Bool {
    entries.contains { entry in (entry.holder?.users.withLock { $0 } ?? 0) > 0 }
  }

  /// Waits until the executors have done what they have to do now, or for a hundredth of a second.
  private static func wait(for executors: [StoreExecutor]) async {
    for executor in executors {
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        let waiter = LetGoWaiter(continuation)
        executor.queue.async { waiter.resume() }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { waiter.resume() }
      }
    }
    // The blocks of a queue are let go of after they ran.
    await withCheckedContinuation { continuation in
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { continuation.resume() }
    }
  }
}

/// A use of a store by a repository or a ``Store``: it ends with the object.
final class StoreUse: Sendable {
  private let queue: StoreCore

  init(_ queue: StoreCore) {
    self.queue = queue
    queue.holder.begin()
  }

  deinit {
    if queue.holder.end() { queue.endMigrations() }
  }
}

/// Resumes once, whoever comes first.
private final class LetGoWaiter: Sendable {
  private let continuation: Mutex<CheckedContinuation<Void, Never>?>

  init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = Mutex(continuation) }

  func resume() { continuation.withLock { $0.take() }?.resume() }
}
