internal import Dispatch
internal import Synchronization

/// The writes that wait for the disk, and how they are committed: all that have arrived meanwhile share one commit, and so one sync.
///
/// The order of every commit: claim (from here on a cancellation comes too late), stage against the pending state, make
/// durable, publish, resume the callers, tell the observers. Only the store's executor does this, so nothing comes
/// between reading and replacing the published state.
final class CommitQueue: Sendable {
  private let inbox = Mutex(Inbox())

  private struct Inbox: Sendable {
    var writes: [PendingWrite] = []
    /// Whether a drain is scheduled or running, which will see what is added.
    var isDraining = false
  }

  /// The number of writes that wait for the next commit, cancelled ones included.
  var count: Int { inbox.withLock { $0.writes.count } }

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
    guard let writes = removeGroup() else { return core.scheduleIdleCheckpoint() }
    commit(writes, to: core)
    core.checkpointBySize()
    core.executor.queue.async { self.drain(core) }
  }

  /// Commits everything that waits: for a store that is being closed.
  ///
  /// On the executor only.
  func commitAll(to core: StoreCore) {
    while let writes = removeGroup() { commit(writes, to: core) }
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

  // MARK: Committing

  /// Claims writes, stages them, and commits what they have staged.
  private func commit(_ writes: [PendingWrite], to core: StoreCore) {
    var state = core.state
    do throws(RepositoryError) {
      try state.checkWritable()
      // Nothing is claimed yet: a write can be cancelled while other processes are waited for.
      if core.options.access == .shared { state = try core.beginSharedCommit(Self.durability(of: writes), after: state) }
    } catch {
      for write in writes { write.claim()?.resume(returning: .failure(error)) }
      return
    }
    var failure: RepositoryError?
    for group in stage(writes, on: state, of: core) {
      // What was staged on top of a commit that failed fails with it.
      if let failure { group.end(failure) } else { failure = group.commit(over: &state, of: core) }
    }
  }

  private static func durability(of writes: [PendingWrite]) -> Durability {
    writes.contains { $0.durability == .durable } ? .durable : .buffered
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
      guard let continuation = write.claim() else { continue }
      let savepoint = group.pending.savepoint()
      let outcome = group.pending.perform(write.operation, from: savepoint)
      let hasWritten = group.pending.recordCount > savepoint.recordCount
      if hasWritten, !group.pending.size.isWithinGroup, savepoint.recordCount > 0, core.options.access != .shared {
        let earlier = group.pending.split(at: savepoint)
        before = [CommitGroup(pending: earlier, claims: group.claims, durability: group.durability)]
        group.claims = []
        group.durability = .buffered
      }
      group.claims.append(.init(continuation: continuation, outcome: outcome, isFinal: savepoint.recordCount == 0 && !hasWritten))
      if write.durability == .durable { group.durability = .durable }
    }
    return before + [group]
  }
}
