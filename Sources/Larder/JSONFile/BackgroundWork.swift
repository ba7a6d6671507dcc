internal import Synchronization

/// A long part of a checkpoint that runs beside commits on another thread, and can be given up at any moment.
final class BackgroundWork<Output: Sendable>: Sendable {
  private let body: @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output
  private let givenUp = Atomic(false)
  /// Held while the work is done, so that giving up waits for its end.
  private let outcome = Mutex<Result<Output, RepositoryError>?>(nil)

  init(_ body: @escaping @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output) { self.body = body }

  /// Does the work, unless it was done or given up.
  func run() {
    outcome.withLock { outcome in
      guard outcome == nil, !isGivenUp else { return }
      do throws(RepositoryError) { outcome = .success(try body(self)) } catch { outcome = .failure(error) }
    }
  }

  /// Whether the work was given up.
  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Checks for cancellation: the work calls this now and then.
  func check() throws(RepositoryError) {
    if isGivenUp { throw RepositoryError(.cancelled, "the checkpoint was given up") }
  }

  /// Ends the work as soon as it looks, and waits for that.
  /// - Returns: What it has made, if it was done.
  func giveUp() -> Output? {
    givenUp.store(true, ordering: .releasing)
    return outcome.withLock { outcome in
      guard case .success(let output) = outcome else { return nil }
      return output
    }
  }

  /// The error that the work has thrown, if any.
  var failure: RepositoryError? {
    outcome.withLock { outcome in
      guard case .failure(let error) = outcome else { return nil }
      return error
    }
  }

  /// Whether it has ended: looked up without waiting.
  var isDone: Bool { outcome.withLockIfAvailable { $0 != nil } ?? false }

  /// Returns what the work has made.
  /// - Throws: What it threw; `.cancelled` when it was not done.
  func result() throws(RepositoryError) -> Output {
    guard let outcome = outcome.withLock({ $0 }) else { throw RepositoryError(.cancelled, "the checkpoint was not done") }
    return try outcome.get()
  }
}

/// A value that is freed by the thread that says so, whatever else still holds the box: freeing a million changes, or the file that they
/// were folded from, takes longer than a commit may wait.
final class Disposal<Value: Sendable>: Sendable {
  private let value: Mutex<Value?>

  init(_ value: Value) { self.value = Mutex(value) }

  /// Lets go of the value.
  func run() {
    let value = value.withLock { $0.take() }
    withExtendedLifetime(value) {}
  }
}
