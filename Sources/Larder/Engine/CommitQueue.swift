internal import Foundation
internal import Synchronization

/// How much a write, or several of them, will make the backend keep.
struct WriteSize: Sendable, Equatable {
  /// What one commit of the backend takes at most, unless a single write is larger: 64 MiB in 65,536 records.
  ///
  /// It bounds the memory of a batch, and keeps it far below what a backend can take, so that no write fails because of others.
  static let group = WriteSize(bytes: 64 << 20, records: 65_536)
  /// The size of a write that is known only when it was staged, such as a transaction.
  static let unknown = WriteSize(bytes: 0, records: 1)
  /// The size of a write that is committed by itself, so that others that fail do not fail it.
  static let alone = group

  var bytes = 0
  var records = 0

  init(bytes: Int = 0, records: Int = 0) {
    self.bytes = bytes
    self.records = records
  }

  /// The size of some records.
  init(of encoded: some Sequence<EncodedRecord>) {
    for record in encoded { add(key: record.key, value: record.value) }
  }

  var isWithinGroup: Bool { bytes <= Self.group.bytes && records <= Self.group.records }

  /// Adds a record or, without a value, a tombstone.
  mutating func add(key: RecordKey, value: Data?) { add(WriteSize(bytes: key.byteCount + (value?.count ?? 0), records: 1)) }

  mutating func add(_ other: WriteSize) {
    bytes += other.bytes
    records += other.records
  }
}

extension StoreCore {
  /// What is committed by one call of the backend, and the writes that it is of.
  private struct Part {
    var batch: PendingState
    var writes: [any AnyQueuedWrite]
  }

  /// One group commit.
  ///
  /// On the executor only.
  func commit(_ writes: [any AnyQueuedWrite]) {
    do throws(RepositoryError) {
      try self.state.checkWritable()
      try beginSharedCommit(writes)
    } catch {
      for write in writes where write.claim() { write.finish(error) }
      return
    }
    var failure: RepositoryError?
    for part in stage(writes) {
      // What was staged on top of a commit that failed fails with it.
      if failure == nil { failure = commit(part) }
      for write in part.writes { write.finish(failure) }
      if failure == nil, !part.batch.isEmpty { hub.announce(part.batch.changes, commit: Revision(self.state.commit)) }
    }
  }

  /// Stages writes until there is as much as one commit may take; those that are left are the next group's.
  ///
  /// Most groups are one part. They are two where the last write turned out to be so large that it is better committed by itself, after the
  /// others; not in a shared store, where other processes could commit between.
  private func stage(_ writes: [any AnyQueuedWrite]) -> [Part] {
    var before: [Part] = []
    var part = Part(batch: PendingState(state, for: self), writes: [])
    part.writes.reserveCapacity(writes.count)
    for (index, write) in writes.enumerated() {
      var size = part.batch.size
      size.add(write.size)
      if !before.isEmpty || (!part.batch.isEmpty && !size.isWithinGroup) {
        putBack(writes[index...])
        break
      }
      guard write.claim() else { continue }
      let savepoint = part.batch.savepoint()
      write.stage(in: &part.batch)
      let isTooMuch = !part.batch.size.isWithinGroup && part.batch.recordCount > savepoint.recordCount
      if isTooMuch, savepoint.recordCount > 0, options.access != .shared {
        before = [Part(batch: part.batch.cut(at: savepoint), writes: part.writes)]
        part.writes = []
      }
      part.writes.append(write)
    }
    return before + [part]
  }

  /// Makes a part durable and publishes it.
  /// - Returns: Why it was not, if it was not.
  private func commit(_ part: Part) -> RepositoryError? {
    guard !part.batch.isEmpty else {
      if options.access == .shared { backend.cancelCommit() }
      return nil
    }
    do throws(RepositoryError) {
      try commit(part.batch.writeBatch(part.writes.contains { $0.durability == .durable } ? .durable : .buffered))
      hub.note(part.batch.changes)
      publish(part.batch.applied(to: self.state))
      checkpoints.withLock { $0.lastWrite = .now }
      return nil
    } catch {
      notePoison(error)
      return error
    }
  }

  /// Makes a batch durable, in the way of a full disk if it only deletes and the disk was found full.
  private func commit(_ batch: WriteBatch) throws(RepositoryError) {
    let isDeletion = options.access == .exclusive && batch.records.allSatisfy { $0.value == nil }
    do throws(RepositoryError) {
      if isDeletion, checkpoints.withLock({ $0.isDiskFull }) { try backend.commitOnFullDisk(batch) } else { try backend.commit(batch) }
      // Making the files smaller rewrites them: the next deletion does so only if it meets a full disk itself.
      checkpoints.withLock { $0.isDiskFull = false }
    } catch {
      guard error.code == .full else { throw error }
      let wasFull = checkpoints.withLock { state in
        defer { state.isDiskFull = true }
        return state.isDiskFull
      }
      guard isDeletion, !wasFull else { throw error }
      try backend.commitOnFullDisk(batch)
      checkpoints.withLock { $0.isDiskFull = false }
    }
  }
}
