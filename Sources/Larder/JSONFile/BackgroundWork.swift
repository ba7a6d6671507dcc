internal import Synchronization

/// A long part of a checkpoint that runs beside commits on another thread, and can be cancelled at any moment.
final class BackgroundWork<Output: Sendable>: Sendable {
  private let body: @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output
  private let givenUp = Atomic(false)
  /// Result of the background work, or `nil` before its end.
  ///
  /// The mutex is held while the work runs, so that ``giveUp()`` waits for its end.
  private let outcome = Mutex<Result<Output, RepositoryError>?>(nil)

  init(_ body: @escaping @Sendable (BackgroundWork<Output>) throws(RepositoryError) -> Output) { self.body = body }

  /// Runs the work, unless it has run or was cancelled.
  func run() {
    outcome.withLock { outcome in
      // Two threads may call this, and the work must run once.
      guard outcome == nil, !isGivenUp else { return }
      do throws(RepositoryError) { outcome = .success(try body(self)) } catch { outcome = .failure(error) }
    }
  }

  /// True if the work was cancelled.
  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Throws `.cancelled` if the work was given up.
  ///
  /// The work calls this now and then.
  func check() throws(RepositoryError) {
    if isGivenUp { throw .checkpointGivenUp }
  }

  /// Cancels the work, and waits until it has ended.
  /// - Returns: The result, if the work had finished.
  func giveUp() -> Output? {
    // Before the mutex: the work holds that until it has seen this flag.
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
  /// Does not wait for it.
  var isDone: Bool { outcome.withLockIfAvailable { $0 != nil } ?? false }

  /// Returns the result of the work.
  /// - Throws: The error of the work, or `.cancelled` if it did not run.
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
/// The owner then changes the value without a copy, or frees it on a thread that no commit waits for. To copy or free a million changes
/// takes longer than a commit may wait.
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
