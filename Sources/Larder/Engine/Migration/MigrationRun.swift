// Migration/ rewrites older records in the background or before an opening ends, and copies the store before the first rewrite.
// Invariant: a rewrite keeps the record's revision, and gives way to any newer write of the record.
// Called by the engine when a repository opens.

internal import Dispatch
internal import Foundation
internal import Synchronization

/// A rewrite of older records, without its generic type.
protocol AnyMigrationRun: AnyObject, Sendable {
  /// Ends the migration before its next batch.
  func cancel()
  /// Starts the migration again if it stopped because the store was suspended.
  func resume()
  /// Records the path of the store's copy from before the first record of the migration's version.
  func note(copy file: String)
}

/// A rewrite of a collection's older records in batches, through the same path as every write.
///
/// The schema version of each record shows whether it is done, so a run that was killed at any point is continued by the next one. Batches
/// are buffered, with one flush at the end. A rewrite that power loss takes back has lost nothing, because the older record is there again.
///
/// The store holds the run, and the run holds the store weakly. So a migration does not keep a dropped store open.
final class MigrationRun<Item: Codable & Identifiable & Sendable>: AnyMigrationRun where Item.ID: Hashable & Codable & Sendable {
  weak let core: StoreCore?
  let collection: Int
  let name: String
  let coder: RecordCoder<Item>
  let options: StoreOptions.Migration
  let state: Mutex<State>
  /// Signal that is raised when the migration ends.
  private let ended = Signal()

  struct State: Sendable {
    var progress: MigrationProgress
    /// Revisions of the records that could not be migrated, by key.
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

  /// True if the migration ends before its next batch, because the store is being closed.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  func cancel() { state.withLock { $0.isCancelled = true } }

  func resume() { if progress.phase == .stopped, progress.error?.code == .suspended { start(isUrgent: false) } }

  func note(copy file: String) { state.withLock { $0.progress.backupFile = file } }

  /// Makes the migration ready for another start if there are older records that it has not tried.
  ///
  /// In a shared store an older program may have saved some.
  func lookAgain() {
    // Only for a run that is over. One that goes on has older records left anyway, and would start once more at its end.
    guard let core, progress.isOver, !untried(in: core.state.collections[collection].records).isEmpty else { return }
    state.withLock { state in
      // Once more under the lock, because another task may have started the run meanwhile.
      guard state.progress.isOver else { return }
      state.progress.phase = .waiting
    }
  }

  /// Returns the records of older schema versions whose migration has not failed since they last changed.
  func untried(in records: RecordMap) -> [RecordSlot] {
    let older = records.older(than: coder.schemaVersion)
    guard !older.isEmpty else { return [] }
    let failed = state.withLock { $0.failed }
    return older.filter { failed[$0.key] != $0.revision }
  }

  /// Starts the migration, or starts a stopped one again.
  ///
  /// Does nothing while it runs or once it is over.
  func start(isUrgent: Bool) {
    let mustStart = state.withLock { state in
      guard !state.isCancelled, state.progress.phase == .waiting || state.progress.phase == .stopped else { return false }
      state.progress.phase = .running
      state.progress.error = nil
      return true
    }
    guard mustStart else { return }
    guard let core else { return end(.storeClosed) }
    core.executor.queue.async { [weak core, self] in
      guard let core else { return end(.storeClosed) }
      let old = core.state.collections[collection].records.ordered().filter { $0.schemaVersion < coder.schemaVersion }
      state.withLock { state in
        let before = state.progress
        // A new start also tries the records that have failed, so the counts begin anew.
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
      // Before the look at the phase, so that an end in between is not missed.
      let moment = ended.moment
      guard progress.phase == .running else { return }
      await ended.wait(after: moment)
    }
  }

  /// Ends the migration with an error, or as finished without one, and resumes the tasks that wait for it.
  func end(_ error: RepositoryError?) {
    state.withLock { state in
      state.progress.phase = error == nil ? .finished : .stopped
      state.progress.error = error
    }
    // Outside the lock, because the app's closure may read the progress.
    options.progress?(progress)
    ended.raise()
    // The store may have been resumed before this run met the suspension. Then no other call restarts it.
    if core?.state.isSuspended == false { resume() }
  }
}

/// Migrations of one store: its rewrites of older records, and the copies made before them.
final class MigrationRegister: Sendable {
  private let runs = Mutex<[MigrationKey: any AnyMigrationRun]>([:])
  private let copies = Mutex(MigrationCopies())

  /// Returns the rewrite of a collection's records, which all its repositories share.
  func run<Item>(of collection: Int, named name: String, coder: RecordCoder<Item>, in core: StoreCore) -> MigrationRun<Item> {
    let new = MigrationRun(core, collection: collection, name: name, coder: coder)
    return runs.withLock { runs in
      let key = MigrationKey(collection: collection, version: coder.schemaVersion)
      if let run = runs[key] as? MigrationRun<Item>, run.progress.phase != .finished { return run }
      runs[key] = new
      return new
    }
  }

  /// Ends all rewrites before their next batch.
  func cancelAll() { for run in runs.withLock({ Array($0.values) }) { run.cancel() } }

  /// Continues the rewrites that stopped because the store was suspended.
  func resumeAll() { for run in runs.withLock({ Array($0.values) }) { run.resume() } }

  /// Copies of the store that this process has made or found.
  var knownCopies: MigrationCopies { copies.withLock { $0 } }

  /// Records the path of the copy that a migration needed, and shows it in the migration's progress.
  func note(copy file: String, for key: MigrationKey) {
    copies.withLock { $0.files[key] = file }
    runs.withLock { $0[key] }?.note(copy: file)
  }

  /// Records that the backend cannot be copied, so that no later write asks it again.
  func noteCopiesAreUnsupported() { copies.withLock { $0.isUnsupported = true } }
}

/// The position of a rewrite's collection, and the schema version to which it leads.
struct MigrationKey: Hashable, Sendable {
  let collection: Int
  let version: Int
}

extension MigrationProgress {
  /// True if the migration has nothing left to do, as far as it has looked.
  fileprivate var isOver: Bool { phase == .notNeeded || phase == .finished }
}

/// An executor with threads of its own for migrations.
///
/// They do not occupy the cooperative pool, and do not wait until it is idle.
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
