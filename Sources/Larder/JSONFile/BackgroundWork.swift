internal import Synchronization

/// A long file operation, such as writing a checkpoint's main file, that can be cancelled and runs on another thread beside commits.
final class BackgroundWork<Output: Sendable>: Sendable {
  private let body: @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output
  private let givenUp = Atomic(false)
  /// Result of the background work, or `nil` before its end.
  ///
  /// ``run()`` holds the mutex of `outcome` while the work runs, so that ``giveUp()`` blocks until the work has ended.
  private let outcome = Mutex<Result<Output, RepositoryError>?>(nil)

  init(_ body: @escaping @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output) { self.body = body }

  /// Runs the background work, unless it has run already or was cancelled.
  func run() {
    outcome.withLock { outcome in
      // The background thread and a commit that needs the result may both call `run()`, and the background work must run only once.
      guard outcome == nil, !isGivenUp else { return }
      do throws(RepositoryError) { outcome = .success(try body(self)) } catch { outcome = .failure(error) }
    }
  }

  /// True if the background work was cancelled.
  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Throws `.cancelled` if ``giveUp()`` was called.
  ///
  /// The background work calls `check()` between its steps, so that it ends soon after ``giveUp()`` was called.
  func check() throws(RepositoryError) {
    if isGivenUp { throw .checkpointGivenUp }
  }

  /// Cancels the background work, and blocks until the work has ended.
  ///
  /// - Returns: The result of the background work if the work has succeeded, and `nil` otherwise.
  func giveUp() -> Output? {
    // The flag is set before the mutex is taken, because running work holds the mutex and ends early only if it reads the flag.
    givenUp.store(true, ordering: .releasing)
    return outcome.withLock { outcome in
      guard case .success(let output) = outcome else { return nil }
      return output
    }
  }

  /// Error that the background work has thrown, or `nil`.
  var failure: RepositoryError? {
    outcome.withLock { outcome in
      guard case .failure(let error) = outcome else { return nil }
      return error
    }
  }

  /// True if the background work has ended.
  ///
  /// Reading `isDone` never blocks. While the work runs, it holds the mutex, and `isDone` is `false`.
  var isDone: Bool { outcome.withLockIfAvailable { $0 != nil } ?? false }

  /// Returns the result of the background work.
  ///
  /// - Throws: The error that the background work has thrown, or `.cancelled` if the work did not run.
  func result() throws(RepositoryError) -> Output {
    guard let outcome = outcome.withLock({ $0 }) else { throw RepositoryError(.cancelled, "the checkpoint was not done") }
    return try outcome.get()
  }
}

extension RepositoryError {
  /// The error of background work that ended because its checkpoint was cancelled.
  static var checkpointGivenUp: RepositoryError { RepositoryError(.cancelled, "the checkpoint was given up") }
}
