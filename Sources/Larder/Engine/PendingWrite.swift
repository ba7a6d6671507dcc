internal import Synchronization

/// A write on its way to its commit, which its caller may give up until the ``CommitQueue`` has claimed it.
///
/// Claiming the write hands its continuation over, which must then be resumed; so what happens after the claim needs no lock.
final class PendingWrite: Sendable {
  typealias Outcome = Result<WriteReceipt, RepositoryError>
  typealias Continuation = CheckedContinuation<Outcome, Never>

  let operation: WriteOperation
  let durability: Durability
  /// The size of what will be written, as far as it is known; a property, since the queue asks for it under its lock.
  let size: WriteSize
  private let phase = Mutex(Phase.new)

  private enum Phase: Sendable {
    case new
    case waiting(Continuation)
    case claimed
    case cancelled
  }

  init(_ operation: WriteOperation, _ durability: Durability) {
    self.operation = operation
    self.durability = durability
    size = operation.size
  }

  /// Begins to wait; `false` when the task was cancelled before, and the caller has its answer.
  func start(_ continuation: Continuation) -> Bool {
    let isWaiting = phase.withLock { phase in
      if case .cancelled = phase { return false }
      phase = .waiting(continuation)
      return true
    }
    if !isWaiting { continuation.resume(returning: .failure(Self.cancellation)) }
    return isWaiting
  }

  /// Claims the write for a commit: the point from which a cancellation comes too late.
  /// - Returns: `nil` when it was cancelled before.
  func claim() -> Continuation? {
    phase.withLock { phase in
      guard case .waiting(let continuation) = phase else { return nil }
      phase = .claimed
      return continuation
    }
  }

  /// Gives the write up if it was not claimed yet; after that it succeeds or fails by itself.
  func cancel() {
    let continuation: Continuation? = phase.withLock { phase in
      switch phase {
      case .new:
        phase = .cancelled
        return nil
      case .waiting(let continuation):
        phase = .cancelled
        return continuation
      case .claimed, .cancelled:
        return nil
      }
    }
    continuation?.resume(returning: .failure(Self.cancellation))
  }

  private static var cancellation: RepositoryError {
    RepositoryError(.cancelled, "the task was cancelled before the commit point; nothing was written")
  }
}
