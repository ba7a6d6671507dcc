internal import Foundation
internal import Larder
internal import Synchronization

/// A blob whose temporary file is written and synced, but which has no index entry yet.
struct BlobDraft: Sendable {
  let key: String
  let ticket: WriteTicket
  let size: Int
  let hash: String
  /// Contents of the blob for the cache in memory, or `nil` if they were too large to be kept while the blob was written.
  let data: Data?
}

extension BlobStore {
  /// Makes a draft (a written and synced temporary file) the blob of its key, and evicts blobs if the store is over its limits.
  ///
  /// Each key has two possible file names, and the draft's file is renamed to the one that the current blob does not use. One commit of the
  /// index then makes the draft valid and removes the entries of the evicted blobs. After the commit of the index, the files of the
  /// replaced and the evicted blobs are removed. If the index takes no more commits, such as after a failed sync, `commit(_:)` throws and
  /// changes no file except the temporary file of the draft.
  func commit(_ draft: BlobDraft) async throws(RepositoryError) {
    do throws(RepositoryError) { try await takeTurn() } catch {
      discard(draft.ticket)
      throw error
    }
    defer { changes.release() }
    let id = draft.ticket.id
    let old: BlobEntry?
    do throws(RepositoryError) {
      // The ticket (the state of the write) is checked after `takeTurn()` has acquired the lock `changes`, because the key may have been
      // removed while this write waited for the lock.
      try draft.ticket.check()
      // After a failed sync of the index, the index on the disk may name the very file that this write would replace, so `checkWritable()`
      // throws.
      try index.checkWritable()
      old = try index.snapshot.find(by: id)
    } catch {
      discard(draft.ticket)
      throw error
    }
    // Reads from memory are added to the order of use before the blobs to evict are chosen, so that a blob that was just read is not
    // evicted.
    drainUses()
    clock += 1
    let entry = BlobEntry(
      id: id, key: draft.key, size: draft.size, hash: draft.hash, slot: old.map { 1 - $0.slot } ?? 0, storedAt: Date(), used: clock)
    // If a later step fails, `commit` itself removes the file of the draft, unless its index entry may be durable. The ticket (the state of
    // the write) is ended here, so that the writer does not remove the file as well.
    draft.ticket.end(.over)
    // The file of a blob gets its final name before the index entry is committed, because an entry must never name a file that a crash
    // could have lost.
    if let problem = try files.place(draft.ticket.temporary, as: BlobFiles.name(entry)) { report(problem) }
    let removed = try await write(entry, victims(for: entry), else: BlobFiles.name(entry))
    // The files of old blobs are removed after the commit, because index entries named these files until the commit.
    forget(removed + [old].compactMap { $0 })
    recency.use(id, entry.size)
    diskBytes += entry.size
    if let data = draft.data { memory.withLock { $0.keep(.init(data: data, storedAt: entry.storedAt), id) } }
  }

  /// Ends a write and removes its temporary file, unless the store is suspended or closed and another process may have the directory.
  func discard(_ ticket: WriteTicket) { ticket.giveUp(files, suspension) }

  /// Commits a new index entry, the removal of the evicted blobs' entries, and the order of use, all at once.
  ///
  /// If the commit fails, the file of the new blob is removed, unless the new entry may be durable.
  private func write(
    _ entry: BlobEntry, _ victims: [String], else name: String
  ) async throws(RepositoryError) -> [BlobEntry] {
    let uses = takeTouched(except: Set(victims).union([entry.id]))
    let index = index
    do throws(RepositoryError) {
      return try await index.write { (transaction) throws(RepositoryError) in
        var removed: [BlobEntry] = []
        for id in victims {
          guard let victim = try transaction.find(by: id, in: index) else { continue }
          try transaction.delete(id, in: index)
          removed.append(victim)
        }
        for (id, use) in uses { try BlobStore.note(use, of: id, in: &transaction, index) }
        try transaction.save(entry, in: index)
        return removed
      }
    } catch {
      // The codes `.outcomeUnknown` and `.poisoned` mean that a sync has failed. The new entry may be durable and need its file, so the
      // file stays. If the entry is not durable, the next opening of the store removes the file.
      if error.code != .outcomeUnknown, error.code != .poisoned { files.discard(name) }
      throw error
    }
  }

  private static func note(
    _ use: UInt64, of id: String, in transaction: inout Transaction, _ index: LocalRepository<BlobEntry>
  ) throws(RepositoryError) {
    guard var entry = try transaction.find(by: id, in: index) else { return }
    entry.used = use
    try transaction.save(entry, in: index)
  }

  /// Returns the least recently used blobs that must be removed, so that the remaining blobs and a new blob are within the limits.
  private func victims(for entry: BlobEntry? = nil) -> [String] {
    var (count, bytes) = (recency.count, diskBytes)
    if let entry {
      count += recency[entry.id] == nil ? 1 : 0
      bytes += entry.size - (recency[entry.id] ?? 0)
    }
    var victims: [String] = []
    // The key that is being written is not evicted, because its old blob is replaced anyway and `bytes` already counts the new size in
    // place of the old size.
    for id in recency.keys where id != entry?.id {
      guard count > limits.diskCount || bytes > limits.diskBytes else { break }
      victims.append(id)
      count -= 1
      bytes -= recency[id] ?? 0
    }
    return victims
  }

  /// Acquires ``changes``, the lock of all changes, and removes the least recently used blobs until the store is within its limits.
  func trim() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    try await removeVictims()
  }

  /// Removes the least recently used blobs until the store is within its limits.
  ///
  /// The caller must hold ``changes``, the lock of all changes.
  func removeVictims() async throws(RepositoryError) {
    let (ids, index) = (victims(), index)
    guard !ids.isEmpty else { return }
    // The index entries are read before the commit that deletes them, because `forget` needs the names of their files.
    let entries = ids.compactMap { index.snapshot.loadEntry($0) }
    try await index.write { (transaction) throws(RepositoryError) in for id in ids { try transaction.delete(id, in: index) } }
    forget(entries)
  }

  /// Removes an index entry whose file is damaged or gone, unless the entry changed or the store was suspended or closed meanwhile.
  ///
  /// - Returns: True if the store is open and the entry was unchanged, so that the caller reports the damage.
  func drop(_ entry: BlobEntry) async -> Bool {
    await changes.acquire()
    defer { changes.release() }
    guard !isClosed, !suspension.isActive, let current = index.snapshot.loadEntry(entry.id), current.isSameBlob(as: entry) else {
      return false
    }
    // If the index cannot be written now, the entry stays, and the next read of the blob finds the same damage again.
    do throws(RepositoryError) { try await index.delete(entry.id) } catch { return true }
    forget([entry])
    return true
  }

  /// Removes blobs whose index entries were deleted or replaced from memory and from the order of use, and removes their files.
  func forget(_ entries: [BlobEntry]) {
    for entry in entries {
      memory.withLock { $0.remove(entry.id) }
      touched.remove(entry.id)
      if let size = recency.remove(entry.id) { diskBytes -= size }
      files.discard(BlobFiles.name(entry))
    }
  }

  // MARK: Order of use

  /// Replaces the order of use in memory by the order that the index entries hold.
  ///
  /// Uses of blobs that were not yet written to the index are kept.
  func adopt(_ entries: [BlobEntry]) {
    let noted = touched
    (recency, touched, diskBytes) = (RecencyList(), RecencyList(), 0)
    let uses = entries.map { (entry: $0, use: max($0.used, noted[$0.id] ?? 0)) }.sorted { $0.use < $1.use }
    for (entry, use) in uses {
      recency.use(entry.id, entry.size)
      diskBytes += entry.size
      if use > entry.used { touched.use(entry.id, use) }
    }
    // The clock never goes back, because the next use needs a higher number than every use in the index.
    clock = max(clock, uses.last?.use ?? 0)
  }

  /// Makes a blob the most recently used.
  func use(_ id: String) {
    // A blob that was removed after it was read from memory must not come back into the order of use.
    guard recency.use(id) != nil else { return }
    clock += 1
    touched.use(id, clock)
  }

  /// Adds the reads of blobs from memory to the order of use.
  private func drainUses() {
    for id in memory.withLock({ $0.takeUsed() }) { use(id) }
  }

  /// Removes from memory, and returns, the use numbers that the next commit writes to the index.
  ///
  /// - Parameter limit: The maximum number of uses to return, which keeps the commit of a save small.
  private func takeTouched(except excluded: Set<String>, limit: Int = 256) -> [(id: String, use: UInt64)] {
    let ids = Array(touched.keys.lazy.filter { !excluded.contains($0) }.prefix(limit))
    return ids.compactMap { id in touched.remove(id).map { (id, $0) } }
  }

  /// Writes the order of use to the index.
  func noteUses() async throws(RepositoryError) {
    drainUses()
    let (uses, index) = (takeTouched(except: [], limit: .max), index)
    guard !uses.isEmpty else { return }
    try await index.write { (transaction) throws(RepositoryError) in
      for (id, use) in uses { try BlobStore.note(use, of: id, in: &transaction, index) }
    }
  }
}

extension RepositorySnapshot where Item == BlobEntry {
  /// Returns the entry of an id, or `nil` if there is none.
  func loadEntry(_ id: String) -> BlobEntry? {
    // An id of 64 hexadecimal digits is always a valid key, so the only possible error is that of an entry that does not decode.
    do throws(RepositoryError) { return try find(by: id) } catch { return nil }
  }
}
