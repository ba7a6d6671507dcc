internal import Dispatch
internal import Foundation
internal import Synchronization

// Engine/ is one open store: its state, its collections, its one writer.
// Invariant: what is published was durable before, and only the executor publishes.
// Called by LocalRepository and Store; calls the backend.

/// An open store: what readers see of it, its collections, and its life from opening to closing.
///
/// A write comes in by ``submit(_:_:)``; ``commits`` gathers it with others, stages and commits them, and publishes the state that follows.
/// Everything that changes the published state runs on ``executor``, but for collections and indexes that are declared.
final class StoreCore: Sendable {
  let identity = StoreIdentity()
  let executor: StoreExecutor
  let options: StoreOptions
  /// The findings of opening the store, or of the last ``resume()`` that has read it anew.
  let report: Mutex<OpenReport>
  let backend: any StorageBackend
  let published: Mutex<StoreState>
  /// The writes that wait for their commit.
  let commits = CommitQueue()
  /// The type that each collection is read as.
  let itemTypes = Mutex<[String: ObjectIdentifier]>([:])
  /// The triggers and coders of tracked collections, by their positions.
  let triggers = Mutex<[Int: CollectionTrigger]>([:])
  let checkpoints: Mutex<CheckpointState>
  /// The one permit to run a checkpoint.
  let checkpointTurn = AsyncSemaphore(1)
  /// The indexes that have been made, or are being made.
  let indexBuilds = Mutex<[IndexAddress: Task<Void, Never>]>([:])
  /// Whether indexes are to settle, which is asked for on the executor only.
  let isSettlingIndexes = Atomic(false)
  /// The number of calls that are about to suspend the store: meanwhile a write waits for no other process.
  let suspensions = Atomic(0)
  /// The state of following the other processes that write the store.
  let foreign = Mutex(ForeignState())
  /// The observers of what is committed.
  let hub: ChangeHub
  /// The rewrites of older records.
  let migrations = Mutex<[MigrationKey: any AnyMigrationRun]>([:])
  /// The copies made before the first records of newer schema versions.
  let copies = Mutex(MigrationCopies())
  /// The count of its users; the last property, so that it goes after the backend and its locks.
  let usage: StoreUsage

  init(
    executor: StoreExecutor, backend: any StorageBackend, options: StoreOptions, state: StoreState, deletions: DeletionLog,
    openReport: OpenReport
  ) {
    self.executor = executor
    self.backend = backend
    self.options = options
    report = Mutex(openReport)
    published = Mutex(state)
    hub = ChangeHub(deletions)
    checkpoints = Mutex(CheckpointState(folded: state.commit - min(state.commit, UInt64(openReport.replayedCommits))))
    usage = StoreUsage(name: backend.name, executor: executor)
  }

  var openReport: OpenReport { report.withLock { $0 } }

  /// The number of writes that wait for the next commit, cancelled ones included: for tests, which fill the queue while the disk is busy.
  var waitingWriteCount: Int { commits.count }

  // MARK: Writing

  /// Queues a write, and returns or throws when its commit is over.
  /// - Throws: `.cancelled` and then nothing was written; why the write was refused; why the commit failed.
  @discardableResult
  func submit(_ operation: WriteOperation, _ durability: Durability? = nil) async throws(RepositoryError) -> WriteReceipt {
    guard options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to write", file: backend.name)
    }
    let write = PendingWrite(operation, durability ?? options.durability)
    let outcome = await withTaskCancellationHandler {
      // One whose task was cancelled before is not queued: its outcome is there already.
      if !write.outcome.isResolved { commits.add(write, to: self) }
      return await write.outcome.value()
    } onCancel: {
      write.cancel()
    }
    return try outcome.get()
  }

  /// Runs a closure over the pending state as one write, and returns what it returns once its changes are committed.
  /// - Throws: what the closure throws, and then nothing was written; otherwise as ``submit(_:_:)``.
  func write<Output: Sendable>(
    _ durability: Durability? = nil, size: WriteSize = .unknown,
    _ body: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await result(durability, size, body).get()
  }

  /// Runs a closure as one write, with the result that the closure had.
  func result<Output: Sendable, Failure: Error>(
    _ durability: Durability?, _ size: WriteSize, _ body: @escaping @Sendable (inout PendingState) throws(Failure) -> Output
  ) async throws(RepositoryError) -> Result<Output, Failure> {
    // Beside the outcome of the write: the closure has types of its own, which a write has not.
    let result = OneShot<Result<Output, Failure>>()
    let body: @Sendable (inout PendingState) -> Void = { pending in
      let savepoint = pending.savepoint()
      do throws(Failure) {
        result.resolve(.success(try body(&pending)))
      } catch {
        pending.restore(savepoint)
        result.resolve(.failure(error))
      }
    }
    try await submit(.transaction(size, body), durability)
    return await result.value()  // there already: a write that has succeeded was run
  }
}

/// The identity of an open store, for values that outlive it: the address of a ``StoreCore`` may be used again.
final class StoreIdentity: Sendable {}
