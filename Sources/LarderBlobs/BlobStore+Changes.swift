internal import Foundation
internal import Larder
internal import Synchronization

/// A blob that is written, synced, and not in place yet.
struct BlobDraft: Sendable {
  let key: String
  let ticket: WriteTicket
  let size: Int
  let hash: String
  /// The contents, if they were kept.
  let data: Data?
}

extension BlobStore {
  /// Makes a draft the blob of its key.
  ///
  /// The file gets the name that the current blob does not have, and one commit of the index then makes it valid, takes the place of
  /// the old one, and removes what is over the limits. Files that are no longer valid go last. An index that can take no commit any
  /// more may name the file that would be replaced: then no file is touched but the draft's own.
  func commit(_ draft: BlobDraft) async throws(RepositoryError) {
    do throws(RepositoryError) { try await takeTurn() } catch {
      discard(draft.ticket)
      throw error
    }
    defer { changes.release() }
    let id = draft.ticket.id
    let old: BlobEntry?
    do throws(RepositoryError) {
      try draft.ticket.check()
      try index.checkWritable()
      old = try index.snapshot.find(by: id)
    } catch {
      discard(draft.ticket)
      throw error
    }
    drainUses()
    clock += 1
    let entry = BlobEntry(
      id: id, key: draft.key, size: draft.size, hash: draft.hash, slot: old.map { 1 - $0.slot } ?? 0, storedAt: Date(), used: clock)
    draft.ticket.end(.over)
    if let problem = try files.place(draft.ticket.temporary, as: BlobFiles.name(entry)) { report(problem) }
    let removed = try await write(entry, victims(for: entry), else: BlobFiles.name(entry))
    forget(removed + [old].compactMap { $0 })
    recency.use(id, entry.size)
    diskBytes += entry.size
    if let data = draft.data { memory.withLock { $0.keep(.init(data: data, storedAt: entry.storedAt), id) } }
  }

  /// Ends a write, and removes its file unless the store was closed or is suspended: then others may have the directory.
  func discard(_ ticket: WriteTicket) { ticket.giveUp(files, suspension) }

  /// Commits an entry, the removal of others, and the order of use; on failure the new file goes.
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
      // After a failed sync it is unknown whether the entry is there: the next open reads it, and finds either the file or an orphan.
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

  /// Returns the blobs used longest ago that must go, so that the rest and a new one are within the limits.
  private func victims(for entry: BlobEntry? = nil) -> [String] {
    var (count, bytes) = (recency.count, diskBytes)
    if let entry {
      count += recency[entry.id] == nil ? 1 : 0
      bytes += entry.size - (recency[entry.id] ?? 0)
    }
    var victims: [String] = []
    for id in recency.keys where id != entry?.id {
      guard count > limits.diskCount || bytes > limits.diskBytes else { break }
      victims.append(id)
      count -= 1
      bytes -= recency[id] ?? 0
    }
    return victims
  }

  /// Removes what is over the limits, which may be lower than when the store was last open.
  func trim() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    try await removeVictims()
  }

  /// Removes the blobs that are over the limits.
  ///
  /// The caller holds ``changes``.
  func removeVictims() async throws(RepositoryError) {
    let (ids, index) = (victims(), index)
    guard !ids.isEmpty else { return }
    let entries = ids.compactMap { index.snapshot.loadEntry($0) }
    try await index.write { (transaction) throws(RepositoryError) in for id in ids { try transaction.delete(id, in: index) } }
    forget(entries)
  }

  /// Removes an entry whose file is damaged or gone, unless it was changed or the store suspended meanwhile.
  ///
  /// - Returns: Whether it was still the same.
  func drop(_ entry: BlobEntry) async -> Bool {
    await changes.acquire()
    defer { changes.release() }
    guard !isClosed, !suspension.isActive, let current = index.snapshot.loadEntry(entry.id), current.isSameBlob(as: entry) else {
      return false
    }
    // If the index cannot be written now, the next read or open finds the same again.
    do throws(RepositoryError) { try await index.delete(entry.id) } catch { return true }
    forget([entry])
    return true
  }

  /// Forgets blobs that the index no longer has, and removes their files.
  func forget(_ entries: [BlobEntry]) {
    for entry in entries {
      memory.withLock { $0.remove(entry.id) }
      touched.remove(entry.id)
      if let size = recency.remove(entry.id) { diskBytes -= size }
      files.discard(BlobFiles.name(entry))
    }
  }

  // MARK: The order of use

  /// Makes the order of use that of the index's entries.
  ///
  /// For a blob that was read since the index was last written, that read counts.
  func adopt(_ entries: [BlobEntry]) {
    let noted = touched
    (recency, touched, diskBytes) = (RecencyList(), RecencyList(), 0)
    let uses = entries.map { (entry: $0, use: max($0.used, noted[$0.id] ?? 0)) }.sorted { $0.use < $1.use }
    for (entry, use) in uses {
      recency.use(entry.id, entry.size)
      diskBytes += entry.size
      if use > entry.used { touched.use(entry.id, use) }
    }
    clock = max(clock, uses.last?.use ?? 0)
  }

  /// Notes a use.
  func use(_ id: String) {
    guard recency.use(id) != nil else { return }
    clock += 1
    touched.use(id, clock)
  }

  /// Notes the uses of blobs in memory.
  private func drainUses() {
    for id in memory.withLock({ $0.takeUsed() }) { use(id) }
  }

  /// Returns what is to be noted in the index beside another change: not much, so that the change stays quick.
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
  /// Returns the entry of an id, if there is one; the id is never one that cannot be a key.
  func loadEntry(_ id: String) -> BlobEntry? {
    do throws(RepositoryError) { return try find(by: id) } catch { return nil }
  }
}
