internal import Dispatch
internal import Foundation
internal import Synchronization

/// A rewrite of older records, whatever they are read as.
protocol AnyMigrationRun: AnyObject, Sendable {
  /// Ends it before its next batch.
  func cancel()
  /// Begins again if it has stopped because the store was suspended.
  func resume()
  /// Notes the copy of the store that was made before the first record of its version.
  func note(copy file: String)
}

/// Rewrites the older records of a collection in batches, through the same path as every write.
///
/// Each record says itself whether it is done, so a run that was killed at any point is continued by the next one. Batches are
/// buffered, with one flush at the end: a rewrite that power loss takes back has lost nothing, because the older record is there again.
///
/// The store holds the run and the run does not hold the store, so that one that is dropped is not kept open by its migration.
final class MigrationRun<Item: Codable & Identifiable & Sendable>: AnyMigrationRun where Item.ID: Hashable & Codable & Sendable {
  weak let core: StoreCore?
  let collection: Int
  let name: String
  let coder: RecordCoder<Item>
  let options: StoreOptions.Migration
  let state: Mutex<State>
  /// Raised when a run ends.
  private let ended = Signal()

  struct State: Sendable {
    var progress: MigrationProgress
    /// The revisions of the records that could not be brought up.
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

  /// Whether it ends before its next batch, because the store is being closed.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  func cancel() { state.withLock { $0.isCancelled = true } }

  func resume() { if progress.phase == .stopped, progress.error?.code == .suspended { start(isUrgent: false) } }

  func note(copy file: String) { state.withLock { $0.progress.backupFile = file } }

  /// Gets ready to be started again if there are older records that it has not seen: in a shared store an older program
  /// may have saved some.
  func lookAgain() {
    // Only a run that is over is asked: one that goes on still has older records before it, and would begin once more when it has ended.
    guard let core, progress.isOver, !untried(in: core.state.collections[collection].records).isEmpty else { return }
    state.withLock { state in
      guard state.progress.isOver else { return }
      state.progress.phase = .waiting
    }
  }

  /// Returns the older records that have not failed.
  func untried(in records: RecordMap) -> [RecordSlot] {
    let older = records.older(than: coder.schemaVersion)
    guard !older.isEmpty else { return [] }
    let failed = state.withLock { $0.failed }
    return older.filter { failed[$0.key] != $0.revision }
  }

  /// Begins, or begins again what has stopped; does nothing while it runs, or when it is over.
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
        state.failed = [:]
        state.progress = MigrationProgress(collection: name, version: coder.schemaVersion, phase: .running)
        state.progress.backupFile = before.backupFile
        state.progress.total = old.count
      }
      do throws(RepositoryError) { try core.state.checkWritable() } catch { return end(error) }
      Task.detached(executorPreference: isUrgent ? MigrationExecutor.urgent : .lazy) { await self.rewrite(old, isUrgent: isUrgent) }
    }
  }

  /// Waits for the end of a run that has been started, or for the cancellation of the task.
  func finish() async {
    while !Task.isCancelled {
      let moment = ended.moment
      guard progress.phase == .running else { return }
      await ended.wait(after: moment)
    }
  }

  /// Ends the run, and resumes those that wait for that.
  func end(_ error: RepositoryError?) {
    state.withLock { state in
      state.progress.phase = error == nil ? .finished : .stopped
      state.progress.error = error
    }
    options.progress?(progress)
    ended.raise()
    // The store may have been resumed before the run has noticed that it was suspended.
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

/// The collection that a rewrite is of, and the version that it leads to.
struct MigrationKey: Hashable, Sendable {
  let collection: Int
  let version: Int
}

extension MigrationProgress {
  /// Whether nothing is left to do, as far as is known.
  fileprivate var isOver: Bool { phase == .notNeeded || phase == .finished }
}

/// Threads of its own for migrations: they neither take the cooperative pool's, nor wait until it has nothing better to do.
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
