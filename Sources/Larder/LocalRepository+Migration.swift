extension LocalRepository {
  /// The progress of rewriting older records at the schema's version.
  ///
  /// Reads need not wait for it: a record that was not rewritten yet is migrated when it is read.
  public nonisolated var migrationProgress: MigrationProgress { migration.progress }

  /// Rewrites the older records that are left, or waits until that is done.
  ///
  /// Needed only with ``StoreOptions/Migration/Mode/manual``, in tests, and to go on after a stop (`.full`, once there
  /// is space again). Records that cannot be migrated do not make it throw: ``MigrationProgress/failures`` lists
  /// them. Cancelling the task ends the wait and not the rewriting. In a shared store it first looks for what older
  /// programs have saved.
  /// - Throws: `.cancelled`; what has stopped it: `.full`, `.inputOutput`, `.outcomeUnknown`, `.poisoned`, `.closed`, and
  ///   `.newerSchema` when another process or repository has written a still newer version meanwhile; what has prevented
  ///   the copy: `.protectedDataUnavailable`, `.corrupted`, `.dataMissing`, `.locked`; `.unsupported` in a store opened
  ///   read-only.
  public nonisolated func finishMigration() async throws(RepositoryError) {
    if core.options.access == .shared, !core.state.isClosed { try await core.refresh() }
    migration.lookAgain()
    guard migrationProgress.phase != .notNeeded else { return }
    guard core.options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to migrate it")
    }
    repeat {
      migration.start(isUrgent: true)
      await migration.finish()
      // Another caller may have begun it again in this moment, for records that an older program has saved since.
    } while !Task.isCancelled && !migration.isCancelled && [.waiting, .running].contains(migrationProgress.phase)
    if migrationProgress.phase == .running { throw RepositoryError(.cancelled, "the wait for the migration was cancelled") }
    if migrationProgress.phase == .waiting { throw .storeClosed }
    if let error = migrationProgress.error { throw error }
  }

  /// Begins the rewrite that the options ask for; with `.eager`, waits for its end.
  nonisolated func beginMigration() async {
    guard core.options.access != .readOnly else { return }
    switch core.options.migration.mode {
    case .manual: return
    case .lazy: migration.start(isUrgent: false)
    case .eager:
      migration.start(isUrgent: true)
      await migration.finish()
    }
  }
}
