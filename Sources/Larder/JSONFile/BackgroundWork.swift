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
    if isGivenUp { throw .checkpointGivenUp }
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

extension RepositoryError {
  /// The error of work that ends because its checkpoint was given up.
  static var checkpointGivenUp: RepositoryError { RepositoryError(.cancelled, "the checkpoint was given up") }
}

/// A box from which one owner takes the value, whatever else still holds the box.
///
/// The owner changes the value without a copy, or frees it on a thread that nobody waits for. Copying or freeing a million changes takes
/// longer than a commit may wait.
final class TransferBox<Value: Sendable>: Sendable {
  private let contents: Mutex<Value?>

  init(_ value: Value) { contents = Mutex(value) }

  /// The value; `nil` once it was taken.
  var value: Value? { contents.withLock { $0 } }

  /// Takes the value out of the box; it is freed at once where the result is not used.
  @discardableResult func take() -> Value? { contents.withLock { $0.take() } }
}
