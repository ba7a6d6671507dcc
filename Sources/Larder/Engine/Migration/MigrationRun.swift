// Migration/ rewrites records of older schema versions, in the background or before an opening ends. Before the first rewrite, the store is
// copied to a file.
// Invariant: a rewrite keeps the meaning of a record, and is skipped if the record was written again since the migration read it.
// Called by the engine when a repository opens.

internal import Dispatch
internal import Foundation
internal import Synchronization

/// A rewrite of a collection's records of older schema versions, without the generic type of the records.
protocol AnyMigrationRun: AnyObject, Sendable {
  /// Ends the rewrite of the records before its next batch.
  func cancel()
  /// Starts the rewrite again if it stopped because the store was suspended.
  func resume()
  /// Records the path of the copy of the store that was made before this migration.
  func note(copy file: String)
}

/// Rewrites a collection's records of older schema versions in batches, which are committed like every other write.
///
/// The schema version of each record shows whether the record is migrated. If the process is killed, the next run continues with the
/// records that are not migrated yet. Batches are buffered, and one flush at the end makes them durable. If power loss undoes a rewrite, no
/// data is lost, because the older record is still there.
///
/// The store holds the `MigrationRun` strongly, and the `MigrationRun` holds the store weakly. A migration therefore does not keep a
/// dropped store open.
final class MigrationRun<Item: Codable & Identifiable & Sendable>: AnyMigrationRun where Item.ID: Hashable & Codable & Sendable {
  weak let core: StoreCore?
  let collection: Int
  let name: String
  let coder: RecordCoder<Item>
  let options: StoreOptions.Migration
  let state: Mutex<State>
  /// Signal that wakes the callers of ``finish()`` when the migration ends.
  private let ended = Signal()

  struct State: Sendable {
    var progress: MigrationProgress
    /// Keys of the records that could not be migrated, with the revision of each record when its migration failed.
    var failed: [RecordKey: Revision] = [:]
    var isCancelled = false
  }

  init(_ core: StoreCore, collection: Int, name: String, coder: RecordCoder<Item>) {
    self.core = core
    self.collection = collection
    self.name = name
    self.coder = coder
    options = core.options.migration
    let isNeeded = core.state.collections[collection].records.hasOlder(than: coder.schemaVersion)
    state = Mutex(
      State(progress: MigrationProgress(collection: name, version: coder.schemaVersion, phase: isNeeded ? .waiting : .notNeeded)))
  }

  var progress: MigrationProgress { state.withLock { $0.progress } }

  /// True if the migration must end before its next batch, because the store is being closed or was released.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  func cancel() { state.withLock { $0.isCancelled = true } }

  func resume() { if progress.phase == .stopped, progress.error?.code == .suspended { start(isUrgent: false) } }

  func note(copy file: String) { state.withLock { $0.progress.backupFile = file } }

  /// Makes a finished migration ready for another start if the collection has older records that it has not tried.
  ///
  /// In a shared store, an older version of the app may have saved records of an older schema version after the migration had finished.
  func lookAgain() {
    // A migration that has not finished still has older records. If its phase were set to `.waiting`, the migration would be started a
    // second time.
    do throws(RepositoryError) {
      guard let core, progress.isOver, try !untried(in: core.state.collections[collection].records).isEmpty else { return }
    } catch {
      return  // the next opening looks for older records again
    }
    state.withLock { state in
      // The phase is checked again under the lock, because another task may have restarted the migration since the first check.
      guard state.progress.isOver else { return }
      state.progress.phase = .waiting
    }
  }

  /// Returns the records of older schema versions, without the records whose migration failed and that were not written since.
  ///
  /// - Throws: The errors of ``RecordMap/older(than:)``.
  func untried(in records: RecordMap) throws(RepositoryError) -> [RecordSlot] {
    let older = try records.older(than: coder.schemaVersion)
    guard !older.isEmpty else { return [] }
    let failed = state.withLock { $0.failed }
    return older.filter { failed[$0.key] != $0.revision }
  }

  /// Starts the migration, or restarts it after it was stopped.
  ///
  /// `start` does nothing while the migration is running, and after it has finished.
  func start(isUrgent: Bool) {
    let mustStart = state.withLock { state in
      guard !state.isCancelled, state.progress.phase == .waiting || state.progress.phase == .stopped else { return false }
      state.progress.phase = .running
      state.progress.error = nil
      return true
    }
    if mustStart { begin(isUrgent: isUrgent) }
  }

  /// Finds the older records and begins to rewrite them, after the phase was set to `.running`.
  private func begin(isUrgent: Bool) {
    guard let core else { return end(.storeClosed) }
    core.executor.queue.async { [weak core, self] in
      guard let core else { return end(.storeClosed) }
      let records = core.state.collections[collection].records
      let old: [RecordSlot]
      do throws(RepositoryError) {
        old = try records.older(than: coder.schemaVersion).sorted { $0.key < $1.key }
      } catch {
        return end(error)
      }
      state.withLock { state in
        let before = state.progress
        // A restart also tries the records that failed before, so the counts of the progress begin at zero.
        state.failed = [:]
        state.progress = MigrationProgress(collection: name, version: coder.schemaVersion, phase: .running)
        state.progress.backupFile = before.backupFile
        state.progress.total = old.count
      }
      do throws(RepositoryError) { try core.state.checkWritable() } catch { return end(error) }
      Task.detached(executorPreference: isUrgent ? MigrationExecutor.urgent : .lazy) { await self.rewrite(old, isUrgent: isUrgent) }
    }
  }

  /// Waits until a started migration ends or the calling task is cancelled.
  func finish() async {
    while !Task.isCancelled {
      // The moment of the signal `ended` is read before the phase. If the migration ends between the two reads, `wait(after:)` returns at
      // once.
      let moment = ended.moment
      guard progress.phase == .running else { return }
      await ended.wait(after: moment)
    }
  }

  /// Ends the migration as finished, or as stopped if there is an error, and resumes the tasks that wait for it.
  ///
  /// If the error is `.suspended` and the store was resumed already, `end` begins the migration again instead.
  func end(_ error: RepositoryError?) {
    let core = core
    let beginsAgain = state.withLock { state in
      // If the store was resumed before this migration failed with `.suspended`, the store's `resume()` has not restarted the migration.
      // The phase stays `.running`, because a caller of `finishMigration()` that found `.stopped` would throw `.suspended` in a resumed
      // store. The store is checked under this lock. If the store were resumed between the check and the change of the phase, its
      // `resume()` would find a running migration, and nothing would restart the migration.
      if error?.code == .suspended, !state.isCancelled, core?.state.isSuspended == false { return true }
      state.progress.phase = error == nil ? .finished : .stopped
      state.progress.error = error
      return false
    }
    if beginsAgain { return begin(isUrgent: false) }
    // The app's progress closure runs outside the lock, because the closure may read `progress`, which takes the same lock.
    options.progress?(progress)
    ended.raise()
  }
}

/// The migrations of one store: the rewrites of older records, and the copies of the store made before them.
final class MigrationRegister: Sendable {
  private let runs = Mutex<[MigrationKey: any AnyMigrationRun]>([:])
  private let copies = Mutex(MigrationCopies())

  /// Returns the rewrite of a collection's records, which all repositories of the collection share until it has finished.
  func run<Item>(of collection: Int, named name: String, coder: RecordCoder<Item>, in core: StoreCore) -> MigrationRun<Item> {
    let new = MigrationRun(core, collection: collection, name: name, coder: coder)
    return runs.withLock { runs in
      let key = MigrationKey(collection: collection, version: coder.schemaVersion)
      if let run = runs[key] as? MigrationRun<Item>, run.progress.phase != .finished { return run }
      runs[key] = new
      return new
    }
  }

  /// Ends all rewrites before their next batch, because the store is being closed or its last user was released.
  func cancelAll() { for run in runs.withLock({ Array($0.values) }) { run.cancel() } }

  /// Restarts the rewrites that stopped because the store was suspended.
  func resumeAll() { for run in runs.withLock({ Array($0.values) }) { run.resume() } }

  /// Copies of the store that this process has made or found, from before its migrations.
  var knownCopies: MigrationCopies { copies.withLock { $0 } }

  /// Records the path of the copy made before a migration, and adds it to the migration's progress.
  func note(copy file: String, for key: MigrationKey) {
    copies.withLock { $0.files[key] = file }
    runs.withLock { $0[key] }?.note(copy: file)
  }

  /// Records that the backend cannot make copies of the store, so that no later write tries to make a copy.
  func noteCopiesAreUnsupported() { copies.withLock { $0.isUnsupported = true } }
}

/// Identifies a migration: the position of the collection, and the schema version to which its records are migrated.
struct MigrationKey: Hashable, Sendable {
  let collection: Int
  let version: Int
}

extension MigrationProgress {
  /// True if the migration has finished, or has found no record of an older schema version.
  fileprivate var isOver: Bool { phase == .notNeeded || phase == .finished }
}

/// An executor for migrations, with threads of its own.
///
/// On Swift's cooperative thread pool, a migration would occupy threads of the app's tasks, or wait for an idle thread.
final class MigrationExecutor: TaskExecutor {
  static let lazy = MigrationExecutor(.utility)
  static let urgent = MigrationExecutor(.userInitiated)

  private let queue: DispatchQueue

  private init(_ qos: DispatchQoS) { queue = DispatchQueue(label: "larder.migration", qos: qos, attributes: .concurrent) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
