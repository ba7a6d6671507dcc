internal import Larder
internal import TestSupport

/// Closing the store and opening it again, with newer and older schemas.
extension World {
  func reopen() async throws {
    try await closeStore()
    try await open(at: "reopened,", version: model.version)
  }

  /// Opens the store, whose commits are all there, and compares it with the model.
  private func open(at moment: String, version: Int, _ mode: StoreOptions.Migration.Mode = .manual) async throws {
    if version > model.version { model.migrate(to: version) } else { model.begin(at: model.revision) }
    opened = try await site.open(version: version, options, mode)
    let report = opened.store.openReport
    try expect(report.isClean, "\(moment) the store reports \(report)")
    try expect(report.commit.number == model.revision, "\(moment) the store opens at commit \(report.commit), not \(model.revision)")
    try await settleMigration(mode)
    try compareContents(moment)
    watcher = Watcher(opened, told: model.places)
  }

  /// Waits for the rewriting that an opening has begun.
  func settleMigration(_ mode: StoreOptions.Migration.Mode) async throws {
    if mode == .manual { return }
    try await opened.notes.finishMigration()
    let progress = opened.notes.migrationProgress
    try expect(progress.error == nil && progress.failureCount == 0, "the migration ended with \(progress)")
    let revision = opened.store.snapshot.revision.number
    try expect(revision >= model.revision, "a migration went back to commit \(revision)")
    model.noteRewrite(at: revision)
    try await opened.store.flush()
  }

  func migrate() async throws {
    try await closeStore()
    let version = model.version + random.int(1..<3)
    let mode: StoreOptions.Migration.Mode = [.eager, .lazy, .manual][random.int(0..<3)]
    try await open(at: "migrated (\(mode)),", version: version, mode)
    try await damageMigration()
  }

  /// Makes the mistake of a step that is done twice.
  private func damageMigration() async throws {
    guard mistake == .migratesTwice, let note = model.notes.values.min(by: { $0.id < $1.id }) else { return }
    try await opened.notes.save(note.migrated(from: model.version, to: model.version + 1))
    try compareContents("after a migration,")
  }

  func finishMigration() async throws {
    try await settleMigration(.eager)
    try compareContents("after the end of a migration,")
  }

  /// Opens the store with a newer schema on a machine that goes down meanwhile, and opens what is left with it.
  func killMigration() async throws {
    guard site.backing == .json else { return try await migrate() }
    try await closeStore()
    let version = model.version + 1
    let files = site.files
    files.crash(beforeOperation: files.operationCount + random.int(1..<30))
    let result = try await attempt { try await site.open(version: version, options, .eager) }
    if let started = result.value, !files.isDown {
      files.crash(beforeOperation: nil)
      try await started.store.close()
    } else {
      try expect(files.isDown, "a migration ended with \(Self.text(result.code)) while the machine was up")
    }
    model.migrate(to: version)
    let summary = try await restart(files)
    try await openBlobsAfterCrash(summary)
    let mode: StoreOptions.Migration.Mode = random.chance(50) ? .eager : .manual
    opened = try await site.open(version: version, options, mode)
    model.noteRewrite(at: opened.store.snapshot.revision.number)
    if mode == .manual { try await settleMigration(.eager) }
    try compareContents("after a migration that was cut off,")
    try await opened.store.flush()
    watcher = Watcher(opened, told: model.places)
  }

  /// Opens a copy with the schema before, which is refused when a note is stored as the newer one has it.
  func openOlderSchema() async throws {
    guard model.version > 1, let copy = try site.copy() else { return }
    let isThere = !model.current.isEmpty
    let result = try await attempt { try await copy.open(version: model.version - 1, options) }
    if isThere { try expect(result.code == .newerSchema, "an older schema ended with \(Self.text(result.code))") }
    try await result.value?.store.close()
  }
}
