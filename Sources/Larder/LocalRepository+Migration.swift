extension LocalRepository {
  /// Progress of the migration that rewrites records of older schema versions in the current version.
  ///
  /// Reads do not wait for the migration. A record that was not rewritten yet is migrated when it is read.
  public nonisolated var migrationProgress: MigrationProgress { migration.progress }

  /// Rewrites the remaining records of older schema versions, or waits for the rewrite that is running.
  ///
  /// Call `finishMigration()` in the mode ``StoreOptions/Migration/Mode/manual``, in tests, and to continue a migration that an error has
  /// stopped, such as `.full` once the disk has space again. `finishMigration()` does not throw for records that cannot be migrated:
  /// ``MigrationProgress/failures`` lists these records. Cancelling the calling task ends the wait, and the migration goes on. In a shared
  /// store, `finishMigration()` first reads the records that older programs have saved.
  /// - Throws: `.cancelled` if the task is cancelled. `.full` or another error of storage that stopped the migration or prevented the
  ///   backup before the migration. `.newerSchema` if another process or repository has written a still newer version meanwhile.
  ///   `.unsupported` in a store opened read-only. See <doc:Errors>.
  public nonisolated func finishMigration() async throws(RepositoryError) {
    // Another process with an older schema may have saved records of its version since this store last read the file.
    if core.options.access == .shared, !core.state.isClosed { try await core.refresh() }
    migration.lookAgain()
    guard migrationProgress.phase != .notNeeded else { return }
    guard core.options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to migrate it")
    }
    var progress: MigrationProgress
    repeat {
      migration.start(isUrgent: true)
      await migration.finish()
      // The phase and the error are read once. If the store were resumed between two reads, the migration would run again, and the wait for
      // it would look like a cancelled one.
      progress = migrationProgress
      // The loop repeats, because another caller may have started a new migration for records that an older program has saved meanwhile.
    } while !Task.isCancelled && !migration.isCancelled && [.waiting, .running].contains(progress.phase)
    // `finish()` also returns when the task is cancelled, although the migration goes on.
    if progress.phase == .running { throw RepositoryError(.cancelled, "the wait for the migration was cancelled") }
    // A migration that was cancelled because the store closes does not start again.
    if progress.phase == .waiting { throw .storeClosed }
    if let error = progress.error { throw error }
  }

  /// Starts the migration in the mode that the options request, and with `.eager` also waits for its end.
  nonisolated func beginMigration() async {
    // No record can be rewritten in a read-only store, where each record is migrated when it is read.
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
