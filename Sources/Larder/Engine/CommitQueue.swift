internal import Dispatch
internal import Foundation
internal import Synchronization

/// The writes that wait for the disk, and how they are committed: all that have arrived meanwhile share one commit, and so one sync.
///
/// The order of every commit: claim (from here on a cancellation comes too late), stage against the pending state, make
/// durable, publish, resume the callers, tell the observers. Only the store's executor does this, so nothing comes
/// between reading and replacing the published state.
final class CommitQueue: Sendable {
  private let inbox = Mutex(Inbox())
  /// Number of calls that are about to suspend the store. Meanwhile a write waits for no other process.
  private let suspensions = Atomic(0)

  private struct Inbox: Sendable {
    var writes: [PendingWrite] = []
    /// The writes that a suspended store holds, before `writes`, and the moment at which each of them gives up.
    var held: [(write: PendingWrite, deadline: ContinuousClock.Instant)] = []
    /// Whether the timer of the first deadline runs.
    var isTimerSet = false
    /// Whether a drain is scheduled or running, which will see what is added.
    var isDraining = false
  }

  /// The number of writes that wait for the next commit, cancelled ones included.
  var count: Int { inbox.withLock { $0.held.count + $0.writes.count } }

  // MARK: Gathering

  /// Adds a write that waits, and has the executor commit it.
  func add(_ write: PendingWrite, to core: StoreCore) {
    let startsDrain = inbox.withLock { inbox in
      inbox.writes.append(write)
      defer { inbox.isDraining = true }
      return !inbox.isDraining
    }
    if startsDrain { core.executor.queue.async { self.drain(core) } }
  }

  /// Commits the writes that wait, and comes again behind what else the executor has to do, so that no stream of writes
  /// keeps a flush waiting.
  ///
  /// On the executor only.
  private func drain(_ core: StoreCore) {
    guard !core.state.holdsWrites else { return hold(by: core) }
    guard let writes = removeGroup() else { return rest(core) }
    commit(writes, to: core)
    core.checkpointer.checkpointBySize(of: core)
    if endIfEmpty() { return rest(core) }
    core.executor.queue.async { self.drain(core) }
  }

  /// Leaves for later what no write should wait for.
  private func rest(_ core: StoreCore) {
    core.checkpointer.scheduleIdleCheckpoint(of: core)
    core.indexBuilder.settleSoon(core)
  }

  /// Ends the drain where nothing waits, as after nearly every commit of a lone writer; then the next write begins another.
  private func endIfEmpty() -> Bool {
    inbox.withLock { inbox in
      inbox.isDraining = !inbox.writes.isEmpty
      return inbox.writes.isEmpty
    }
  }

  /// Commits everything that waits, or refuses what a suspended store holds: for a store that is being closed.
  ///
  /// On the executor only.
  func commitAll(to core: StoreCore) {
    takeHeld()
    // A wait that is ended refuses the writes here: put back, they would come again and again.
    while let writes = removeGroup() { commit(writes, to: core, putsBack: false) }
  }

  /// Removes the writes of the next group, in their order: as many as ``WriteSize/group`` allows, and at least one.
  private func removeGroup() -> [PendingWrite]? {
    inbox.withLock { inbox in
      var size = WriteSize()
      var count = 0
      for write in inbox.writes {
        size.add(write.size)
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

  /// True while a caller is about to suspend the store.
  var isSuspending: Bool { suspensions.load(ordering: .acquiring) > 0 }

  /// Begins the time in which writes wait for no other process, because the store is about to be suspended.
  func beginSuspending() { suspensions.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// Ends the time that ``beginSuspending()`` began.
  func endSuspending() { suspensions.wrappingSubtract(1, ordering: .acquiringAndReleasing) }

  /// Commits the next group: for a store that is being suspended.
  ///
  /// On the executor only.
  func commitNext(to core: StoreCore) {
    if let writes = removeGroup() { commit(writes, to: core) }
  }

  /// Holds the writes that wait until the store is resumed, each at most for ``StoreOptions/suspensionTimeout``.
  private func hold(by core: StoreCore) {
    let deadline = ContinuousClock.now + core.options.suspensionTimeout
    inbox.withLock { inbox in
      inbox.held += inbox.writes.map { ($0, deadline) }
      inbox.writes = []
      inbox.isDraining = false
    }
    refuseOverdue(of: core)
  }

  /// Refuses the writes that were held for too long, and sets the one timer for the next.
  private func refuseOverdue(of core: StoreCore) {
    let now = ContinuousClock.now
    let (overdue, next): ([PendingWrite], ContinuousClock.Instant?) = inbox.withLock { inbox in
      // Their deadlines ascend.
      let count = inbox.held.firstIndex { $0.deadline > now } ?? inbox.held.count
      let overdue = inbox.held.prefix(count).map(\.write)
      inbox.held.removeFirst(count)
      guard !inbox.isTimerSet, let next = inbox.held.first?.deadline else { return (overdue, nil) }
      inbox.isTimerSet = true
      return (overdue, next)
    }
    for write in overdue where write.claim() { write.outcome.resolve(.failure(.storeSuspended)) }
    guard let next else { return }
    core.executor.queue.asyncAfter(deadline: .now() + (next - now).inSeconds) { [weak core] in
      guard let core else { return }
      core.commits.inbox.withLock { $0.isTimerSet = false }
      core.commits.refuseOverdue(of: core)
    }
  }

  /// Has the executor commit what waits: for a store that was resumed.
  func drainSoon(to core: StoreCore) {
    inbox.withLock { $0.isDraining = true }
    core.executor.queue.async { self.drain(core) }
  }

  /// Puts the writes that were held before those that came later.
  func takeHeld() {
    inbox.withLock { inbox in
      inbox.writes = inbox.held.map(\.write) + inbox.writes
      inbox.held = []
    }
  }

  // MARK: Committing

  /// Claims writes, stages them, and commits what they have staged.
  ///
  /// - Parameter putsBack: Whether writes wait on where the wait for other processes was ended, because the store is about to be suspended.
  private func commit(_ writes: [PendingWrite], to core: StoreCore, putsBack: Bool = true) {
    var state = core.state
    do throws(RepositoryError) {
      try state.checkWritable()
      if core.options.access == .shared {
        // Nothing is claimed yet: a write can be cancelled while other processes are waited for.
        let durability = writes.reduce(Durability.buffered) { $0.combined(with: $1.durability) }
        state = try core.follower.beginSharedCommit(durability, after: state, of: core)
      }
    } catch {
      if putsBack, isSuspending, error.code == .locked {
        return inbox.withLock { $0.writes = writes + $0.writes }
      }
      for write in writes where write.claim() { write.outcome.resolve(.failure(error)) }
      return
    }
    var failure: RepositoryError?
    for group in stage(writes, on: state, of: core) { failure = group.commit(to: core, after: failure) }
  }

  /// Stages writes, in one pass, until there is as much as one commit may take; those that are left are the next group's.
  ///
  /// Nearly always they are one group. They are two where the last write turned out to be so large that it is better
  /// committed by itself, after the others; not in a shared store, where other processes could commit between.
  private func stage(_ writes: [PendingWrite], on state: StoreState, of core: StoreCore) -> [CommitGroup] {
    var before: [CommitGroup] = []
    var group = CommitGroup(pending: PendingState(state, of: core))
    group.claims.reserveCapacity(writes.count)
    for (position, write) in writes.enumerated() {
      var size = group.pending.size
      size.add(write.size)
      if !before.isEmpty || (!group.pending.isEmpty && !size.isWithinGroup) {
        // Removed and not claimed: they are the next.
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
      group.claims.append(.init(write: write, outcome: outcome, isFinal: savepoint.recordCount == 0 && !hasWritten))
      group.durability = group.durability.combined(with: write.durability)
    }
    return before + [group]
  }
}

/// A write on its way to its commit, which its caller may give up until the ``CommitQueue`` has claimed it.
final class PendingWrite: Sendable {
  typealias Outcome = Result<WriteReceipt, RepositoryError>

  let operation: WriteOperation
  let durability: Durability
  /// The size of what will be written, as far as it is known; a property, since the queue asks for it under its lock.
  let size: WriteSize
  /// Resolved once: by the commit that the write was claimed for, or by its cancellation.
  let outcome = OneShot<Outcome>()
  /// Whether the write was claimed or cancelled: whichever comes first sets this, and comes to resolve the outcome.
  private let isTaken = Atomic(false)

  init(_ operation: WriteOperation, _ durability: Durability) {
    self.operation = operation
    self.durability = durability
    size = operation.size
  }

  /// Claims the write for a commit: the point from which a cancellation comes too late.
  /// - Returns: `false` when it was cancelled before.
  func claim() -> Bool { isTaken.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged }

  /// Gives the write up if it was not claimed yet; after that it succeeds or fails by itself.
  func cancel() {
    guard claim() else { return }
    outcome.resolve(.failure(RepositoryError(.cancelled, "the task was cancelled before the commit point; nothing was written")))
  }
}

/// The writes that one call of the backend commits, and the state that they have staged.
private struct CommitGroup {
  var pending: PendingState
  var claims: [Claim] = []
  var durability = Durability.buffered

  /// A claimed write, which waits for the commit that it is part of.
  struct Claim {
    let write: PendingWrite
    let outcome: PendingWrite.Outcome
    /// Whether the outcome does not depend on other writes of the group, so that their failure does not change it.
    let isFinal: Bool
  }

  /// Makes the group durable, publishes it, resumes the callers, and tells the observers.
  ///
  /// - Parameter earlier: The failure of the group before, if it failed: what was staged on top of it fails with it.
  /// - Returns: The reason why the group was not committed, if it was not.
  func commit(to core: StoreCore, after earlier: RepositoryError?) -> RepositoryError? {
    let failure = earlier ?? makeDurable(by: core)
    let hasCommitted = failure == nil && !pending.isEmpty
    var before: StoreState?  // released when no caller waits any more: it is as much as the commit has changed
    if hasCommitted {
      // Before they are published: a reader of a published state that then asks for deletions gets every one that led to it.
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
      core.rebaseIfWorthwhile()
    }
    return failure
  }

  /// Makes what was staged durable, in the way of a full disk if it only deletes and the disk was found full.
  /// - Returns: Why that failed, if it did.
  private func makeDurable(by core: StoreCore) -> RepositoryError? {
    guard !pending.isEmpty else {
      if core.options.access == .shared { core.backend.cancelCommit() }
      return nil
    }
    let batch = pending.writeBatch(durability)
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
