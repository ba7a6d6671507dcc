internal import Synchronization

/// A write on its way to its commit, whatever it returns.
protocol AnyQueuedWrite: Sendable {
  /// What the write must survive.
  var durability: Durability { get }
  /// How much it will write, as far as that is known.
  var size: WriteSize { get }
  /// The commit point: takes the write for the batch that is being gathered; `false` when it was cancelled before.
  func claim() -> Bool
  /// Applies the write to the staged state, or notes why it cannot be.
  func stage(in batch: inout PendingState)
  /// Ends the write: with what it was staged to return, or with the error of the commit it was part of.
  func finish(_ commitError: RepositoryError?)
}

/// A caller's write: waiting until it is claimed (and may be cancelled until then), staged, finished.
final class QueuedWrite<Output: Sendable>: AnyQueuedWrite {
  typealias Outcome = Result<Output, any Error>

  let durability: Durability
  let size: WriteSize
  private let origin: ChangeOrigin
  private let body: @Sendable (inout PendingState) throws -> Output
  private let phase = Mutex(Phase.new)

  private enum Phase: Sendable {
    case new
    case waiting(CheckedContinuation<Outcome, Never>)
    case claimed(CheckedContinuation<Outcome, Never>)
    /// `isFinal` when the outcome does not depend on others' writes in the batch, so that their failure does not change it.
    case staged(CheckedContinuation<Outcome, Never>, Outcome, isFinal: Bool)
    case cancelled
    case finished
  }

  init(
    _ durability: Durability, _ origin: ChangeOrigin, _ size: WriteSize, _ body: @escaping @Sendable (inout PendingState) throws -> Output
  ) {
    self.durability = durability
    self.size = size
    self.origin = origin
    self.body = body
  }

  /// Begins to wait; `false` when the task was cancelled already, and the caller has its answer.
  func start(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
    let isWaiting = phase.withLock { phase in
      if case .cancelled = phase { return false }
      phase = .waiting(continuation)
      return true
    }
    if !isWaiting { continuation.resume(returning: .failure(Self.cancellation)) }
    return isWaiting
  }

  /// Gives the write up if it was not claimed yet; later it is too late, and the write succeeds or fails by itself.
  func cancel() {
    let continuation: CheckedContinuation<Outcome, Never>? = phase.withLock { phase in
      switch phase {
      case .new:
        phase = .cancelled
        return nil
      case .waiting(let continuation):
        phase = .cancelled
        return continuation
      default:
        return nil
      }
    }
    continuation?.resume(returning: .failure(Self.cancellation))
  }

  func claim() -> Bool {
    phase.withLock { phase in
      guard case .waiting(let continuation) = phase else { return false }
      phase = .claimed(continuation)
      return true
    }
  }

  func stage(in batch: inout PendingState) {
    let isFirst = batch.isEmpty
    let outcome: Outcome
    let savepoint = batch.savepoint()
    do {
      batch.origin = origin
      let output = try body(&batch)
      try batch.endCommit()
      outcome = .success(output)
    } catch {
      batch.restore(savepoint)
      outcome = .failure(error)
    }
    let hasWritten = batch.recordCount > savepoint.recordCount
    phase.withLock { phase in
      guard case .claimed(let continuation) = phase else { return }
      phase = .staged(continuation, outcome, isFinal: isFirst && !hasWritten)
    }
  }

  func finish(_ commitError: RepositoryError?) {
    let ended: (CheckedContinuation<Outcome, Never>, Outcome)? = phase.withLock { phase in
      defer { phase = .finished }
      switch phase {
      case .staged(let continuation, let outcome, let isFinal):
        guard let commitError, !isFinal else { return (continuation, outcome) }
        return (continuation, .failure(commitError))
      case .waiting(let continuation), .claimed(let continuation):
        return (continuation, .failure(commitError ?? RepositoryError(.closed)))
      default:
        return nil
      }
    }
    if let (continuation, outcome) = ended { continuation.resume(returning: outcome) }
  }

  private static var cancellation: RepositoryError {
    RepositoryError(.cancelled, "the task was cancelled before the commit point; nothing was written")
  }
}
