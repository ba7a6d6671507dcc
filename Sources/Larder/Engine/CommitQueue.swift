internal import Dispatch
internal import Foundation
internal import Synchronization

/// A queue of writes with group commit: all writes that arrive during one sync share the next commit and its sync.
///
/// Every commit has the same steps: claim the writes (a later cancellation has no effect), stage them against the pending state, make them
/// durable, publish, resume the callers, announce to observers. They run on the store's executor only, so no other commit comes between
/// reading and replacing the published state.
final class CommitQueue: Sendable {
  private let inbox = Mutex(Inbox())
  /// Number of `suspend()` calls under way, which may overlap.
  ///
  /// Until it is zero again, no write waits for another process.
  private let suspensions = Atomic(0)

  private struct Inbox: Sendable {
    var writes: [PendingWrite] = []
    /// Writes that a suspended store holds, each with the time at which it fails.
    ///
    /// They come before `writes`.
    var held: [(write: PendingWrite, deadline: ContinuousClock.Instant)] = []
    /// True while the timer for the first deadline of a held write runs.
    var isTimerSet = false
    /// True while a drain, the task that commits group after group, is scheduled or running.
    ///
    /// That drain also takes writes that are added now.
    var isDraining = false
  }

  /// Number of writes that wait for the next commit, cancelled ones included.
  var count: Int { inbox.withLock { $0.held.count + $0.writes.count } }

  // MARK: Gathering

  /// Adds a write, and schedules a drain on the executor unless one is under way.
  func add(_ write: PendingWrite, to core: StoreCore) {
    let startsDrain = inbox.withLock { inbox in
      inbox.writes.append(write)
      defer { inbox.isDraining = true }
      return !inbox.isDraining
    }
    // A drain under way takes this write too, so a burst of writes costs one dispatch.
    if startsDrain { core.executor.queue.async { self.drain(core) } }
  }

  /// Commits the next group of writes, and schedules itself again if more are waiting.
  ///
  /// The next turn is queued after the executor's other work, so that a stream of writes does not keep a flush waiting.
  ///
  /// Runs on the executor only.
  private func drain(_ core: StoreCore) {
    guard !core.state.holdsWrites else { return hold(by: core) }
    guard let writes = removeGroup() else { return rest(core) }
    commit(writes, to: core)
    // After each group, because a steady stream of writes never reaches the end of the drain.
    core.checkpointer.checkpointBySize(of: core)
    if endIfEmpty() { return rest(core) }
    core.executor.queue.async { self.drain(core) }
  }

  /// Schedules the work that no write should wait for: idle checkpoints and changes of indexes.
  private func rest(_ core: StoreCore) {
    core.checkpointer.scheduleIdleCheckpoint(of: core)
    core.indexBuilder.settleSoon(core)
  }

  /// Ends the drain of the queue if no write waits, and returns true then.
  ///
  /// The next write starts another. Nearly every commit of a lone writer ends here, without the dispatch of an empty drain.
  private func endIfEmpty() -> Bool {
    inbox.withLock { inbox in
      // Both under one lock: a write that is added in between would start no drain, and would never be committed.
      inbox.isDraining = !inbox.writes.isEmpty
      return inbox.writes.isEmpty
    }
  }

  /// Commits all waiting writes before the store is closed.
  ///
  /// A suspended store refuses them. Runs on the executor only.
  func commitAll(to core: StoreCore) {
    takeHeld()
    // If `suspend()` ends the wait for another process, these writes fail. Put back, they would keep this loop going for ever.
    while let writes = removeGroup() { commit(writes, to: core, putsBack: false) }
  }

  /// Removes the next group from the queue and returns it: as many writes as ``WriteSize/group`` allows, at least one, in their order.
  private func removeGroup() -> [PendingWrite]? {
    inbox.withLock { inbox in
      var size = WriteSize()
      var count = 0
      for write in inbox.writes {
        size.add(write.size)
        // A write over the limit makes a group by itself. Left in the queue, it would block all others.
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

  /// Begins a suspension of the store: until ``endSuspending()`` no write waits for another process.
  func beginSuspending() { suspensions.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// Ends a suspension that ``beginSuspending()`` began.
  func endSuspending() { suspensions.wrappingSubtract(1, ordering: .acquiringAndReleasing) }

  /// Commits the next group, before the store is suspended.
  ///
  /// Runs on the executor only.
  func commitNext(to core: StoreCore) {
    if let writes = removeGroup() { commit(writes, to: core) }
  }

  /// Holds the waiting writes until the store is resumed, each for at most ``StoreOptions/suspensionTimeout``.
  private func hold(by core: StoreCore) {
    let deadline = ContinuousClock.now + core.options.suspensionTimeout
    inbox.withLock { inbox in
      inbox.held += inbox.writes.map { ($0, deadline) }
      inbox.writes = []
      inbox.isDraining = false
    }
    refuseOverdue(of: core)
  }

  /// Fails the writes that were held for too long, and sets the one timer for the next.
  private func refuseOverdue(of core: StoreCore) {
    let now = ContinuousClock.now
    let (overdue, next): ([PendingWrite], ContinuousClock.Instant?) = inbox.withLock { inbox in
      // Deadlines ascend, because every write is held for the same time.
      let count = inbox.held.firstIndex { $0.deadline > now } ?? inbox.held.count
      let overdue = inbox.held.prefix(count).map(\.write)
      inbox.held.removeFirst(count)
      guard !inbox.isTimerSet, let next = inbox.held.first?.deadline else { return (overdue, nil) }
      inbox.isTimerSet = true
      return (overdue, next)
    }
    // A write that its caller has cancelled meanwhile has an outcome already.
    for write in overdue where write.claim() { write.outcome.resolve(.failure(.storeSuspended)) }
    guard let next else { return }
    // Weak, because a dropped store must not stay open until the timer fires.
    core.executor.queue.asyncAfter(deadline: .now() + (next - now).inSeconds) { [weak core] in
      guard let core else { return }
      core.commits.inbox.withLock { $0.isTimerSet = false }
      core.commits.refuseOverdue(of: core)
    }
  }

  /// Schedules a drain, after the store was resumed.
  func drainSoon(to core: StoreCore) {
    inbox.withLock { $0.isDraining = true }
    core.executor.queue.async { self.drain(core) }
  }

  /// Puts the held writes back into the queue, before later ones.
  func takeHeld() {
    inbox.withLock { inbox in
      inbox.writes = inbox.held.map(\.write) + inbox.writes
      inbox.held = []
    }
  }

  // MARK: Committing

  /// Claims, stages and commits writes.
  ///
  /// - Parameter putsBack: Whether writes go back into the queue if `suspend()` has ended their wait for other processes.
  private func commit(_ writes: [PendingWrite], to core: StoreCore, putsBack: Bool = true) {
    var state = core.state
    do throws(RepositoryError) {
      try state.checkWritable()
      if core.options.access == .shared {
        // Before any write is claimed, so that callers can cancel while the commit waits for another process.
        let durability = writes.reduce(Durability.buffered) { $0.combined(with: $1.durability) }
        state = try core.follower.beginSharedCommit(durability, after: state, of: core)
      }
    } catch {
      if putsBack, isSuspending, error.code == .locked {
        // The suspension is no failure of these writes. They are held, and committed after `resume()`.
        return inbox.withLock { $0.writes = writes + $0.writes }
      }
      for write in writes where write.claim() { write.outcome.resolve(.failure(error)) }
      return
    }
    var failure: RepositoryError?
    for group in stage(writes, on: state, of: core) { failure = group.commit(to: core, after: failure) }
  }

  /// Stages writes until one commit is full, and returns them in one or two groups.
  ///
  /// The rest goes back into the queue. There are two groups if the last write proves so large that it is better committed by itself, after
  /// the others. A shared store has one group only, because other processes could commit between two.
  private func stage(_ writes: [PendingWrite], on state: StoreState, of core: StoreCore) -> [CommitGroup] {
    var before: [CommitGroup] = []
    var group = CommitGroup(pending: PendingState(state, of: core))
    group.claims.reserveCapacity(writes.count)
    for (position, write) in writes.enumerated() {
      var size = group.pending.size
      size.add(write.size)
      if !before.isEmpty || (!group.pending.isEmpty && !size.isWithinGroup) {
        // Removed from the queue and not claimed, so they lead the next group.
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
      // A write that depended on no earlier one and wrote nothing keeps its outcome, even if the commit fails.
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
  /// Size of the records to be written, as far as it is known.
  ///
  /// Stored, because the queue reads it under its lock.
  let size: WriteSize
  /// Outcome of the write, which is resolved once: by the commit that claimed it, or by its cancellation.
  let outcome = OneShot<Outcome>()
  /// True once the write was claimed or cancelled.
  ///
  /// The side that sets it resolves the outcome.
  private let isTaken = Atomic(false)

  init(_ operation: WriteOperation, _ durability: Durability) {
    self.operation = operation
    self.durability = durability
    size = operation.size
  }

  /// Claims the write for a commit.
  ///
  /// A later cancellation has no effect.
  /// - Returns: `false` if it was cancelled before.
  func claim() -> Bool { isTaken.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged }

  /// Cancels the write if it is not claimed yet.
  ///
  /// A claimed write succeeds or fails by itself.
  func cancel() {
    guard claim() else { return }
    outcome.resolve(.failure(RepositoryError(.cancelled, "the task was cancelled before the commit point; nothing was written")))
  }
}

/// The writes that one call of the backend commits, with the state that they have staged.
private struct CommitGroup {
  var pending: PendingState
  var claims: [Claim] = []
  var durability = Durability.buffered

  /// A claimed write that waits for the commit of its group.
  struct Claim {
    let write: PendingWrite
    let outcome: PendingWrite.Outcome
    /// True if the outcome does not depend on other writes of the group.
    ///
    /// A failed commit then does not change it.
    let isFinal: Bool
  }

  /// Makes the group durable, publishes it, resumes the callers, and announces the changes to observers.
  ///
  /// - Parameter earlier: Error of the previous group, if it failed. This group was staged on top of it, and fails with the same error.
  /// - Returns: The error for which the group was not committed, or `nil`.
  func commit(to core: StoreCore, after earlier: RepositoryError?) -> RepositoryError? {
    let failure = earlier ?? makeDurable(by: core)
    let hasCommitted = failure == nil && !pending.isEmpty
    // Released after the callers are resumed. Before them, it took a seventh of the executor's time with groups of 64 writes.
    var before: StoreState?
    if hasCommitted {
      // Before publishing: a reader of the new state that then asks for deletions must get every one that led to it.
      let deletions = pending.changes.compactMap(\.deletion)
      if !deletions.isEmpty { core.hub.note(deletions) }
      before = core.publish(pending.collections, commit: pending.latest)
    }
    for claim in claims {
      let outcome = failure.flatMap { claim.isFinal ? nil : .failure($0) } ?? claim.outcome
      claim.write.outcome.resolve(outcome)
    }
    withExtendedLifetime(before) {}
    if hasCommitted {
      core.hub.announce(pending.changes, commit: pending.latest)
      // After the callers, who must not wait while a collection is sorted.
      core.rebaseIfWorthwhile()
    }
    return failure
  }

  /// Makes the staged records durable.
  ///
  /// If they are only deletions and the disk was found full, uses the backend's commit for a full disk.
  /// - Returns: The error, or `nil` on success.
  private func makeDurable(by core: StoreCore) -> RepositoryError? {
    guard !pending.isEmpty else {
      // `beginCommit` has locked out other processes, also for a group that then writes nothing.
      if core.options.access == .shared { core.backend.cancelCommit() }
      return nil
    }
    let batch = pending.writeBatch(durability)
    // Shared stores keep no space in reserve for deletions, because their other processes may run an older version.
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
