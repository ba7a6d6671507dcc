internal import Synchronization

/// A long file operation, such as writing a checkpoint's main file, that runs beside commits on another thread and can be cancelled.
final class BackgroundWork<Output: Sendable>: Sendable {
  private let body: @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output
  private let givenUp = Atomic(false)
  /// Result of the background work, or `nil` before its end.
  ///
  /// ``run()`` holds the mutex while the work runs, so that ``giveUp()`` blocks until the work has ended.
  private let outcome = Mutex<Result<Output, RepositoryError>?>(nil)

  init(_ body: @escaping @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output) { self.body = body }

  /// Runs the work, unless it has run or was cancelled.
  func run() {
    outcome.withLock { outcome in
      // The background thread and a commit that needs the result may both call `run()`, and the work must run only once.
      guard outcome == nil, !isGivenUp else { return }
      do throws(RepositoryError) { outcome = .success(try body(self)) } catch { outcome = .failure(error) }
    }
  }

  /// True if the work was cancelled.
  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Throws `.cancelled` if ``giveUp()`` was called.
  ///
  /// The work calls `check()` between its steps, so that ``giveUp()`` need not wait for the whole work.
  func check() throws(RepositoryError) {
    if isGivenUp { throw .checkpointGivenUp }
  }

  /// Cancels the work, and waits until it has ended.
  ///
  /// - Returns: The result of the work if it has succeeded, and `nil` otherwise.
  func giveUp() -> Output? {
    // The flag is set before the mutex is taken: running work holds the mutex until it ends, and ends early only if it reads the flag.
    givenUp.store(true, ordering: .releasing)
    return outcome.withLock { outcome in
      guard case .success(let output) = outcome else { return nil }
      return output
    }
  }

  /// Error that the work has thrown, if any.
  var failure: RepositoryError? {
    outcome.withLock { outcome in
      guard case .failure(let error) = outcome else { return nil }
      return error
    }
  }

  /// True if the work has ended.
  ///
  /// Reading the property never blocks: running work holds the mutex, and then the property is `false`.
  var isDone: Bool { outcome.withLockIfAvailable { $0 != nil } ?? false }

  /// Returns the result of the work.
  ///
  /// - Throws: The error of the work, or `.cancelled` if the work did not run.
  func result() throws(RepositoryError) -> Output {
    guard let outcome = outcome.withLock({ $0 }) else { throw RepositoryError(.cancelled, "the checkpoint was not done") }
    return try outcome.get()
  }
}

extension RepositoryError {
  /// Error of work that ended because its checkpoint was given up.
  static var checkpointGivenUp: RepositoryError { RepositoryError(.cancelled, "the checkpoint was given up") }
}

/// A box whose value one owner can take out, even while other references to the box remain.
///
/// The owner can then change the value without a copy-on-write copy, or free it on a thread that no commit waits for. Copying or freeing
/// the changes of a million records takes longer than a commit may wait.
final class TransferBox<Value: Sendable>: Sendable {
  private let contents: Mutex<Value?>

  init(_ value: Value) { contents = Mutex(value) }

  /// Value in the box, or `nil` after ``take()``.
  var value: Value? { contents.withLock { $0 } }

  /// Takes the value out of the box.
  ///
  /// If the caller does not use the result, the value is freed at once.
  @discardableResult func take() -> Value? { contents.withLock { $0.take() } }
}
