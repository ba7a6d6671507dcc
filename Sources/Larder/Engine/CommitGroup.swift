internal import Synchronization

/// The writes that one call of the backend commits, and the state that they have staged.
struct CommitGroup {
  var pending: PendingState
  var claims: [Claim] = []
  var durability = Durability.buffered

  /// A claimed write, which waits for the commit that it is part of.
  struct Claim {
    let continuation: PendingWrite.Continuation
    let outcome: PendingWrite.Outcome
    /// Whether the outcome does not depend on other writes of the group, so that their failure does not change it.
    let isFinal: Bool
  }

  /// Makes the group durable, publishes it, resumes the callers, and tells the observers.
  ///
  /// - Parameter state: The published state, before and after.
  /// - Returns: The reason why the group was not committed, if it was not.
  func commit(over state: inout StoreState, of core: StoreCore) -> RepositoryError? {
    guard !pending.isEmpty else {
      if core.options.access == .shared { core.backend.cancelCommit() }
      end(nil)
      return nil
    }
    do throws(RepositoryError) {
      try makeDurable(pending.writeBatch(durability), in: core)
    } catch {
      core.notePoison(error)
      end(error)
      return error
    }
    state = pending.applied(to: state)
    core.publish(state, changes: pending.changes)
    end(nil)
    core.hub.announce(pending.changes, commit: Revision(state.commit))
    return nil
  }

  /// Resumes the callers, with the failure of the commit if there was one.
  func end(_ failure: RepositoryError?) {
    for claim in claims {
      if let failure, !claim.isFinal {
        claim.continuation.resume(returning: .failure(failure))
      } else {
        claim.continuation.resume(returning: claim.outcome)
      }
    }
  }

  /// Makes a batch durable, in the way of a full disk if it only deletes and the disk was found full.
  private func makeDurable(_ batch: WriteBatch, in core: StoreCore) throws(RepositoryError) {
    let isDeletion = core.options.access == .exclusive && batch.records.allSatisfy { $0.value == nil }
    let wasFull = isDeletion && core.checkpoints.withLock { $0.isDiskFull }
    do throws(RepositoryError) {
      if wasFull { try core.backend.commitOnFullDisk(batch) } else { try core.backend.commit(batch) }
    } catch {
      guard error.code == .full else { throw error }
      core.checkpoints.withLock { $0.isDiskFull = true }
      guard isDeletion, !wasFull else { throw error }
      try core.backend.commitOnFullDisk(batch)
    }
    core.checkpoints.withLock { state in
      state.lastWrite = .now
      // Making the files smaller rewrites them: the next deletion does so only if it meets a full disk itself.
      state.isDiskFull = false
    }
  }
}
