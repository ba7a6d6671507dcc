internal import Foundation
internal import Synchronization

/// A rewrite of older records, whatever they are read as.
protocol AnyMigrationRun: AnyObject, Sendable {
  /// Ends it before its next batch.
  func cancel()
  /// Takes note of the copy of the store that was made before the first record of its version.
  func note(copy file: String)
}

/// Rewrites the older records of a collection in batches, through the same path as every write.
///
/// Which record is done is what the record itself says, so a run that was killed at any point is continued by the next one. Batches are
/// buffered, with one flush at the end: a rewrite that power loss takes back has lost nothing, because the older record is there again.
///
/// The store holds the run and the run does not hold the store, so that one that is dropped is not kept open by its migration.
final class MigrationRun<Item: Codable & Identifiable & Sendable>: AnyMigrationRun where Item.ID: Hashable & Codable & Sendable {
  private weak let queue: StoreCore?
  private let collection: Int
  private let name: String
  private let coder: RecordCoder<Item>
  private let options: StoreOptions.Migration
  private let state: Mutex<State>

  private struct State: Sendable {
    var progress: MigrationProgress
    /// The revisions of the records that could not be brought up.
    var failed: [RecordKey: Revision] = [:]
    var isCancelled = false
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    var waiterCount = 0
  }

  init(_ queue: StoreCore, collection: Int, name: String, coder: RecordCoder<Item>) {
    self.queue = queue
    self.collection = collection
    self.name = name
    self.coder = coder
    options = queue.options.migration
    let isNeeded = queue.state.collections[collection].records.oldestSchemaVersion < coder.schemaVersion
    state = Mutex(
      State(progress: MigrationProgress(collection: name, version: coder.schemaVersion, phase: isNeeded ? .waiting : .notNeeded)))
  }

  var progress: MigrationProgress { state.withLock { $0.progress } }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  func cancel() { state.withLock { $0.isCancelled = true } }

  func note(copy file: String) { state.withLock { $0.progress.backupFile = file } }

  /// Waits to be started again if there are older records that it has not seen: in a shared store an older program may have saved them since.
  func lookAgain() {
    guard let queue else { return }
    let isOver = state.withLock { $0.progress.phase == .notNeeded || $0.progress.phase == .finished }
    guard isOver, !untried(in: queue.state.collections[collection].records).isEmpty else { return }
    state.withLock { state in
      guard state.progress.phase == .notNeeded || state.progress.phase == .finished else { return }
      state.progress.phase = .waiting
    }
  }

  /// The older records that have not failed.
  private func untried(in records: RecordMap) -> [RecordSlot] {
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
    guard let queue else { return end(RepositoryError(.closed, "the store was dropped")) }
    queue.executor.queue.async { [weak queue, self] in
      guard let queue else { return end(RepositoryError(.closed)) }
      let old = queue.state.collections[collection].records.ordered().filter { $0.schemaVersion < coder.schemaVersion }
      state.withLock { state in
        let before = state.progress
        state.failed = [:]
        state.progress = MigrationProgress(collection: name, version: coder.schemaVersion, phase: .running)
        state.progress.backupFile = before.backupFile
        state.progress.total = old.count
      }
      do throws(RepositoryError) {
        try queue.state.checkWritable()
      } catch {
        return end(error)
      }
      Task.detached(executorPreference: isUrgent ? MigrationExecutor.urgent : .lazy) { await self.rewrite(old, isUrgent: isUrgent) }
    }
  }

  /// Waits for the end of a run that has been started.
  func finish() async {
    let number = state.withLock { state in
      state.waiterCount += 1
      return state.waiterCount
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          // The handler takes the same lock, so a cancellation is seen either here or there.
          guard state.progress.phase == .running, !Task.isCancelled else { return true }
          state.waiters[number] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
    }
  }

  private func end(_ error: RepositoryError?) {
    let waiters = state.withLock { state in
      state.progress.phase = error == nil ? .finished : .stopped
      state.progress.error = error
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    options.progress?(progress)
    for waiter in waiters { waiter.resume() }
  }

  // MARK: The records

  private struct Rewrite: Sendable {
    let record: EncodedRecord
    /// The revision of the older record, which must still be there.
    let old: RecordSlot
  }

  private func rewrite(_ old: [RecordSlot], isUrgent: Bool) async {
    var rest = Array(old.reversed())  // so that what is done can be let go of
    do throws(RepositoryError) {
      while !rest.isEmpty {
        let part = Array(rest.suffix(isUrgent ? options.batchSize * 8 : options.batchSize).reversed())
        rest.removeLast(part.count)
        try checkEnd()
        var rewrites = await migrated(part, isUrgent: isUrgent)[...]
        if !rewrites.isEmpty { findCopyOfEarlierRun() }
        while !rewrites.isEmpty {
          try await commit(Array(rewrites.prefix(options.batchSize)))
          rewrites = rewrites.dropFirst(options.batchSize)
          // The last batch is reported with the end.
          if !(rewrites.isEmpty && rest.isEmpty) { options.progress?(progress) }
          await Task.yield()
        }
        if rest.isEmpty { rest = try await savedMeanwhile() }
      }
      guard let queue else { throw RepositoryError(.closed, "the store was dropped") }
      if progress.rewritten > 0 { try await queue.flush() }
      end(nil)
    } catch {
      end(error)
    }
  }

  /// The older records that a program of an older version has put into a shared store since the rewrite began.
  ///
  /// Asked in the turn of a write, so that nobody commits meanwhile. Once there is a record of the new version, older programs write no more.
  private func savedMeanwhile() async throws(RepositoryError) -> [RecordSlot] {
    guard let queue else { throw RepositoryError(.closed, "the store was dropped") }
    guard queue.options.access == .shared else { return [] }
    try checkEnd()
    let collection = collection
    let found = try await repositoryErrors {
      try await queue.write(.buffered, origin: .migration) { batch in self.untried(in: batch.collections[collection].records) }
    }
    state.withLock { $0.progress.total += found.count }
    return found
  }

  /// Tells of the copy that a run has made which was interrupted after it.
  private func findCopyOfEarlierRun() {
    guard progress.backupFile == nil, let queue,
      queue.state.collections[collection].records.newestSchemaVersion == coder.schemaVersion
    else { return }
    let key = MigrationKey(collection: collection, version: coder.schemaVersion)
    let known = queue.copies.withLock { $0.files[key] }
    if let file = known ?? queue.copyOfEarlierRun(before: coder.schemaVersion, of: collection) { note(copy: file) }
  }

  private func checkEnd() throws(RepositoryError) {
    if isCancelled { throw RepositoryError(.closed, "the store was closed") }
  }

  /// The records brought up, on every core if it is urgent; failures are noted.
  private func migrated(_ slots: [RecordSlot], isUrgent: Bool) async -> [Rewrite] {
    guard isUrgent, slots.count > options.batchSize else { return migrated(slots[...]) }
    return await withTaskGroup(of: (Int, [Rewrite]).self) { group in
      for start in stride(from: 0, to: slots.count, by: options.batchSize) {
        group.addTask { (start, self.migrated(slots[start..<min(start + self.options.batchSize, slots.count)])) }
      }
      var parts: [(Int, [Rewrite])] = []
      for await part in group { parts.append(part) }
      return parts.sorted { $0.0 < $1.0 }.flatMap(\.1)
    }
  }

  private func migrated(_ slots: ArraySlice<RecordSlot>) -> [Rewrite] {
    var rewrites: [Rewrite] = []
    for slot in slots {
      do throws(RepositoryError) {
        let (value, data) = try slot.migrated(coder)
        let record = EncodedRecord(key: slot.key, schemaVersion: coder.schemaVersion, value: data, decoded: value)
        rewrites.append(Rewrite(record: record, old: slot))
      } catch {
        note(error, slot)
      }
    }
    return rewrites
  }

  private func note(_ error: RepositoryError, _ slot: RecordSlot) {
    let failure = UndecodableRecord(
      collection: name, key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, error: error)
    state.withLock { state in
      state.failed[slot.key] = slot.revision
      state.progress.note(failure)
    }
  }

  /// Commits a batch; records that cannot be together are tried one by one.
  private func commit(_ rewrites: [Rewrite]) async throws(RepositoryError) {
    guard let queue else { throw RepositoryError(.closed, "the store was dropped") }
    try checkEnd()
    let collection = collection
    do throws(RepositoryError) {
      let count = try await repositoryErrors {
        try await queue.write(.buffered, origin: .migration) { batch in
          var count = 0
          for rewrite in rewrites {
            // What was changed meanwhile is newer than what was brought up here.
            guard let found = batch.collections[collection].records[rewrite.record.key], found.revision == rewrite.old.revision,
              found.schemaVersion == rewrite.old.schemaVersion
            else { continue }
            try batch.rewrite(rewrite.record, of: found, in: collection)
            count += 1
          }
          return count
        }
      }
      state.withLock { state in
        state.progress.rewritten += count
        state.progress.skipped += rewrites.count - count
      }
    } catch {
      guard [.uniqueViolation, .tooLarge, .encodingFailed].contains(error.code) else { throw error }
      if let only = rewrites.first, rewrites.count == 1 { return note(error, only.old) }
      for rewrite in rewrites { try await commit([rewrite]) }
    }
  }
}

extension StoreCore {
  /// The rewrite of a collection's records, which all its repositories share.
  func migration<Item>(of collection: Int, named name: String, coder: RecordCoder<Item>) -> MigrationRun<Item> {
    let new = MigrationRun(self, collection: collection, name: name, coder: coder)
    return migrations.withLock { runs in
      let key = MigrationKey(collection: collection, version: coder.schemaVersion)
      if let run = runs[key] as? MigrationRun<Item>, run.progress.phase != .finished { return run }
      runs[key] = new
      return new
    }
  }

  /// Ends all rewrites before their next batch.
  func endMigrations() {
    for run in migrations.withLock({ Array($0.values) }) { run.cancel() }
  }
}

/// What a rewrite is for.
struct MigrationKey: Hashable, Sendable {
  let collection: Int
  let version: Int
}
