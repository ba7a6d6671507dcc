internal import Dispatch
internal import Foundation
internal import Synchronization

/// Queues the writes of a store for group commit: writes that arrive during one sync share the next commit and its sync.
///
/// Every commit first claims its writes, after which their callers cannot cancel them. The commit then stages the writes in a
/// ``PendingState``, makes them durable, and publishes the new state. At last the commit resumes the callers and announces the changes to
/// observers. All these steps run on the store's executor, so no other commit runs between reading and replacing the published state.
final class CommitQueue: Sendable {
  private let inbox = Mutex(Inbox())
  /// Number of `suspend()` calls in progress.
  ///
  /// Calls of `suspend()` may overlap. While the number is above zero, a write that would wait for another process is put back into the
  /// queue.
  private let suspensions = Atomic(0)

  private struct Inbox: Sendable {
    var writes: [PendingWrite] = []
    /// Writes that wait for `resume()` in a suspended store, each with the time at which it fails with `.suspended`.
    ///
    /// After `resume()` the held writes are committed before the writes in `writes`.
    var held: [(write: PendingWrite, deadline: ContinuousClock.Instant)] = []
    /// True while a timer runs for the earliest deadline in `held`.
    var isTimerSet = false
    /// True while a drain (the executor block that commits one group of writes after another) is scheduled or running.
    ///
    /// While `isDraining` is true, `add` schedules no drain of the queue, because the scheduled or running drain commits the added write.
    var isDraining = false
  }

  /// Number of writes that are queued, or held until `resume()`.
  ///
  /// Cancelled writes count until a commit removes them.
  var count: Int { inbox.withLock { $0.held.count + $0.writes.count } }

  // MARK: Gathering

  /// Adds a write to the queue, and schedules a drain of the queue on the executor if none is scheduled or running.
  func add(_ write: PendingWrite, to core: StoreCore) {
    let startsDrain = inbox.withLock { inbox in
      inbox.writes.append(write)
      defer { inbox.isDraining = true }
      return !inbox.isDraining
    }
    // If a block that commits queued writes is scheduled already, that block commits the new write too. Many writes at once thus cost one
    // dispatch and not one for each write.
    if startsDrain { core.executor.queue.async { self.drain(core) } }
  }

  /// Commits the next group of writes, and schedules another drain of the queue if the queue is not empty.
  ///
  /// Each group of writes is a separate block on the executor. A waiting flush runs between two groups, even while writes arrive without a
  /// pause.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func drain(_ core: StoreCore) {
    guard !core.state.holdsWrites else { return hold(by: core) }
    guard let writes = removeGroup() else { return rest(core) }
    commit(writes, to: core)
    // The journal's size is checked after every group of writes and not when the queue is empty. Under a steady stream of writes the queue
    // is never empty, and the journal would grow without limit.
    core.checkpointer.checkpointBySize(of: core)
    if endIfEmpty() { return rest(core) }
    core.executor.queue.async { self.drain(core) }
  }

  /// Schedules an idle checkpoint and the application of logged changes to indexes, once the queue is empty.
  private func rest(_ core: StoreCore) {
    core.checkpointer.scheduleIdleCheckpoint(of: core)
    core.indexBuilder.settleSoon(core)
  }

  /// Ends the drain of the queue and returns true if the queue is empty.
  ///
  /// After the end of a drain of the queue, the next write starts another drain. If a single writer awaits each of its writes,
  /// `endIfEmpty()` ends nearly every drain, which saves one dispatch per commit.
  private func endIfEmpty() -> Bool {
    inbox.withLock { inbox in
      // The queue is checked and `isDraining` is set under one lock. If the lock were released between the two steps, a write that is added
      // in between would schedule no drain of the queue and never be committed.
      inbox.isDraining = !inbox.writes.isEmpty
      return inbox.writes.isEmpty
    }
  }

  /// Commits all waiting and held writes, before the store is closed.
  ///
  /// In a suspended store the waiting writes fail with `.suspended`. Must run on the store's executor.
  func commitAll(to core: StoreCore) {
    takeHeld()
    // If `suspend()` ends the wait for another process's lock, the writes of the group fail. If the failed writes were put back into the
    // queue, this loop would never end.
    while let writes = removeGroup() { commit(writes, to: core, putsBack: false) }
  }

  /// Removes the next group from the front of the queue: at least one write, and as many as ``WriteSize/group`` allows.
  private func removeGroup() -> [PendingWrite]? {
    inbox.withLock { inbox in
      var size = WriteSize()
      var count = 0
      for write in inbox.writes {
        size.add(write.size)
        // A write larger than the size limit of a group forms a group by itself. If no group accepted such a write, the write would block
        // the queue for ever.
        if count > 0, !size.isWithinGroup { break }
        count += 1
      }
      guard count > 0 else {
        inbox.isDraining = false
        return nil
      }
      let group = Array(inbox.writes.prefix(count))
      inbox.writes.removeFirst(count)
      return group
    }
  }

  // MARK: Suspending

  /// True while a `suspend()` call is under way.
  var isSuspending: Bool { suspensions.load(ordering: .acquiring) > 0 }

  /// Begins a suspension of the store.
  ///
  /// Until ``endSuspending()`` no write waits for another process.
  func beginSuspending() { suspensions.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// Ends a suspension that ``beginSuspending()`` began.
  func endSuspending() { suspensions.wrappingSubtract(1, ordering: .acquiringAndReleasing) }

  /// Commits the next group of writes, before the store is suspended.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func commitNext(to core: StoreCore) {
    if let writes = removeGroup() { commit(writes, to: core) }
  }

  /// Moves the queued writes to `held`, where each waits for `resume()` for at most ``StoreOptions/suspensionTimeout``.
  private func hold(by core: StoreCore) {
    let deadline = ContinuousClock.now + core.options.suspensionTimeout
    inbox.withLock { inbox in
      inbox.held += inbox.writes.map { ($0, deadline) }
      inbox.writes = []
      inbox.isDraining = false
    }
    refuseOverdue(of: core)
  }

  /// Fails the held writes whose deadline has passed with `.suspended`, and sets the timer for the next deadline.
  private func refuseOverdue(of core: StoreCore) {
    let now = ContinuousClock.now
    let (overdue, next): ([PendingWrite], ContinuousClock.Instant?) = inbox.withLock { inbox in
      // All held writes have the same timeout, so the deadlines in `held` ascend. All writes before the first deadline in the future are
      // overdue.
      let count = inbox.held.firstIndex { $0.deadline > now } ?? inbox.held.count
      let overdue = inbox.held.prefix(count).map(\.write)
      inbox.held.removeFirst(count)
      guard !inbox.isTimerSet, let next = inbox.held.first?.deadline else { return (overdue, nil) }
      inbox.isTimerSet = true
      return (overdue, next)
    }
    // `claim()` returns false for a write that its caller has cancelled, because the cancellation has resolved the write's outcome already.
    for write in overdue where write.claim() { write.outcome.resolve(.failure(.storeSuspended)) }
    guard let next else { return }
    // The timer holds the store weakly, because a strong reference would keep a dropped store and its locks until the timer fires.
    core.executor.queue.asyncAfter(deadline: .now() + (next - now).inSeconds) { [weak core] in
      guard let core else { return }
      core.commits.inbox.withLock { $0.isTimerSet = false }
      core.commits.refuseOverdue(of: core)
    }
  }

  /// Schedules a drain of the queue, which commits the queued writes, after the store was resumed.
  func drainSoon(to core: StoreCore) {
    inbox.withLock { $0.isDraining = true }
    core.executor.queue.async { self.drain(core) }
  }

  /// Moves the held writes back into the queue, in front of the writes that arrived later.
  func takeHeld() {
    inbox.withLock { inbox in
      inbox.writes = inbox.held.map(\.write) + inbox.writes
      inbox.held = []
    }
  }

  // MARK: Committing

  /// Claims, stages and commits writes of the queue.
  ///
  /// - Parameter putsBack: True if the writes go back into the queue when `suspend()` ends their wait for another process's lock.
  private func commit(_ writes: [PendingWrite], to core: StoreCore, putsBack: Bool = true) {
    // If the backend has lost the base, every write would fail at reading the record that it replaces.
    core.moveBaseIfWorthwhile()
    var state = core.state
    do throws(RepositoryError) {
      try state.checkWritable()
      if core.options.access == .shared {
        // `beginSharedCommit` may wait for another process's lock, so no write is claimed before that call. Callers can still cancel their
        // writes during the wait for the lock.
        let durability = writes.reduce(Durability.buffered) { $0.combined(with: $1.durability) }
        state = try core.follower.beginSharedCommit(durability, after: state, of: core)
      }
    } catch {
      if putsBack, isSuspending, error.code == .locked {
        // `suspend()` has ended the wait for the lock, which is no fault of the writes. The writes go back into the queue, and are
        // committed after `resume()`.
        return inbox.withLock { $0.writes = writes + $0.writes }
      }
      for write in writes where write.claim() { write.outcome.resolve(.failure(error)) }
      return
    }
    // A build may take seconds, for which the system does not wait while it suspends the app.
    if !isSuspending, core.buildLostUniqueIndexes() { state = core.state }
    var failure: RepositoryError?
    var groups = stage(writes, on: state, of: core)
    for number in groups.indices {
      failure = groups[number].commit(to: core, after: failure, isLast: number == groups.count - 1)
    }
  }

  /// Stages writes until a commit has reached its size limit, and returns them as one or two commit groups.
  ///
  /// Writes that no longer fit into the commit go back into the queue. If the last staged write makes the commit too large, the earlier
  /// writes form the first group, and the last write forms the second group. In a shared store all staged writes form one group, because
  /// another process could commit between two groups.
  private func stage(_ writes: [PendingWrite], on state: StoreState, of core: StoreCore) -> [CommitGroup] {
    var before: [CommitGroup] = []
    var group = CommitGroup(pending: PendingState(state, of: core))
    group.claims.reserveCapacity(writes.count)
    for (position, write) in writes.enumerated() {
      var size = group.pending.size
      size.add(write.size)
      if !before.isEmpty || (!group.pending.isEmpty && !size.isWithinGroup) {
        // The writes that do not fit were removed from the queue but not claimed. At the front of the queue, writes that did not fit keep
        // their place in the order of writes.
        inbox.withLock { $0.writes = writes[position...] + $0.writes }
        break
      }
      guard write.claim() else { continue }
      let savepoint = group.pending.savepoint(before: write.operation)
      let outcome = group.pending.perform(write.operation, from: savepoint)
      let hasWritten = group.pending.recordCount > savepoint.recordCount
      if hasWritten, !group.pending.size.isWithinGroup, savepoint.canSplit, core.options.access != .shared {
        let earlier = group.pending.split(at: savepoint)
        before = [CommitGroup(pending: earlier, claims: group.claims, durability: group.durability)]
        group.claims = []
        group.durability = .buffered
      }
      // If nothing was staged before a write and the write itself staged nothing, its outcome stands even if the commit of the group fails.
      group.claims.append(.init(write: write, outcome: outcome, isFinal: savepoint.recordCount == 0 && !hasWritten))
      group.durability = group.durability.combined(with: write.durability)
    }
    return before + [group]
  }
}

/// A queued write, which its caller may cancel until the ``CommitQueue`` has claimed it.
final class PendingWrite: Sendable {
  typealias Outcome = Result<WriteReceipt, RepositoryError>

  let operation: WriteOperation
  let durability: Durability
  /// Size of the records to be written, as far as the size is known before the write is staged.
  ///
  /// The size is stored and not computed, because the queue reads it while it holds its lock.
  let size: WriteSize
  /// Outcome of the write, resolved exactly once: by the commit or refusal that claimed the write, or by its cancellation.
  let outcome = OneShot<Outcome>()
  /// True once a commit has claimed the write or its caller has cancelled it.
  ///
  /// Only the commit or cancellation that sets `isTaken` from false to true may resolve the outcome.
  private let isTaken = Atomic(false)

  init(_ operation: WriteOperation, _ durability: Durability) {
    self.operation = operation
    self.durability = durability
    size = operation.size
  }

  /// Claims the write for a commit.
  ///
  /// After the claim, a cancellation of the write has no effect.
  /// - Returns: `false` if the write was cancelled or claimed before.
  func claim() -> Bool { isTaken.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged }

  /// Cancels the write if no commit has claimed it.
  ///
  /// The cancellation of a claimed write has no effect, and the write succeeds or fails with its commit.
  func cancel() {
    guard claim() else { return }
    outcome.resolve(.failure(RepositoryError(.cancelled, "the task was cancelled before the commit point; nothing was written")))
  }
}

/// Claimed writes that one call of the backend commits together, with the pending state in which they are staged.
private struct CommitGroup {
  var pending: PendingState
  var claims: [Claim] = []
  var durability = Durability.buffered

  /// A claimed write that waits for the commit of its group.
  struct Claim {
    let write: PendingWrite
    let outcome: PendingWrite.Outcome
    /// True if the outcome does not depend on the commit of the group.
    ///
    /// If the commit of the group fails, a write with a final outcome keeps that outcome.
    let isFinal: Bool
  }

  /// Makes the group durable, publishes it, resumes the callers, and announces the changes to observers.
  ///
  /// - Parameters:
  ///   - earlier: Error of the previous commit group, if its commit failed. A group that was staged on top of a failed group fails too.
  ///   - isLast: False if another group was staged on top of this one.
  /// - Returns: The error that prevented the commit of this group, or `nil`.
  mutating func commit(to core: StoreCore, after earlier: RepositoryError?, isLast: Bool) -> RepositoryError? {
    let failure = earlier ?? makeDurable(by: core)
    let hasCommitted = failure == nil && !pending.isEmpty
    // The previous published state is released after the callers are resumed, because its release took a seventh of the executor's time
    // with groups of 64 writes.
    var before: StoreState?
    if hasCommitted {
      // The deletion log gets the deletions before the new state is published. If the log got them later, a reader of the new state could
      // miss the deletions of that state.
      let deletions = pending.changes.compactMap(\.deletion)
      if !deletions.isEmpty { core.hub.note(deletions) }
      pending.dropLostIndexes()
      before = core.publish(pending.collections, commit: pending.latest)
    }
    for claim in claims {
      let outcome = failure.flatMap { claim.isFinal ? nil : .failure($0) } ?? claim.outcome
      claim.write.outcome.resolve(outcome)
    }
    withExtendedLifetime(before) {}
    if hasCommitted {
      core.hub.announce(pending.changes, commit: pending.latest)
      // A rebase, which merges the changed records of a collection into its sorted array, may sort all of them. The rebase runs after the
      // callers are resumed, so that no caller waits for the sort. The next group was staged on the records as they are, and its commit
      // would publish them over the old base.
      if isLast { core.rebaseIfWorthwhile() }
      // This group still holds the old base. A shared store moves on before the next commit, when nothing holds it.
      if isLast, core.options.access != .shared { core.moveBaseIfWorthwhile() }
    } else if failure?.code == .full, isLast, core.options.access != .shared {
      // The old base may keep the space that the backend has tried to free.
      core.moveBaseIfWorthwhile()
    }
    return failure
  }

  /// Passes the staged records to the backend, which makes them durable.
  ///
  /// If the batch contains only deletions and the disk is full, calls the backend's `commitOnFullDisk` instead of `commit`.
  /// - Returns: The error of the backend, or `nil` on success.
  private func makeDurable(by core: StoreCore) -> RepositoryError? {
    guard !pending.isEmpty else {
      // `beginCommit` keeps other processes from committing until `commit` or `cancelCommit`. A group without records makes no `commit`, so
      // it must call `cancelCommit`.
      if core.options.access == .shared { core.backend.cancelCommit() }
      return nil
    }
    let batch = pending.writeBatch(durability)
    // Shared stores have no disk reserve for deletions, because another process may run an older version of Larder that keeps no reserve.
    let isDeletion = core.options.access == .exclusive && batch.records.allSatisfy { $0.value == nil }
    let wasFull = isDeletion && core.checkpointer.isDiskFull
    do throws(RepositoryError) {
      do throws(RepositoryError) {
        if wasFull { try core.backend.commitOnFullDisk(batch) } else { try core.backend.commit(batch) }
      } catch {
        guard error.code == .full else { throw error }
        core.checkpointer.noteFullDisk()
        guard isDeletion, !wasFull else { throw error }
        try core.backend.commitOnFullDisk(batch)
      }
    } catch {
      core.notePoison(error)
      return error
    }
    core.checkpointer.noteWrite()
    return nil
  }
}
