public import Larder
internal import Synchronization

extension BlobStore {
  /// Gives up the lock of the directory before the system stops the process, and keeps the store usable for reading.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call this when the app goes
  /// to the background, and ``resume()`` when it comes back. In between another process may open the directory.
  ///
  /// Blobs in memory and in files are still returned, as of the moment of the call. A file that is gone, damaged or no file any more may be
  /// another process's doing: it is a miss, is not reported, and is left alone. No file is made, changed or removed. Writes, those of a
  /// ``BlobWriter`` too, removals and ``clear()`` wait for ``resume()``. After 30 s, or when the store is closed, they throw `.suspended`.
  ///
  /// Every blob that was saved is durable when this returns. The order of the reads since the last write is in memory only: an app that the
  /// system ends while it is suspended loses it. The second call does nothing, nor does one on a closed store.
  ///
  /// Cost: the change under way, and what a writer has handed to the disk at this moment: a chunk, or the sync of a whole blob. A writer
  /// that is open, and changes that wait, are not waited for.
  public nonisolated(nonsending) func suspend() async {
    // Before the hop to the executor: jobs that are queued there already must see it.
    suspension.begin()
    await suspendInTurn()
  }

  private func suspendInTurn() async {
    await changes.acquire()
    defer { changes.release() }
    guard !isClosed, !isSuspended else { return suspension.end() }
    isSuspended = true
    await index.suspend()
  }

  /// Takes the lock of the directory again, and takes in what another process has stored and removed since ``suspend()``.
  ///
  /// Changes that wait go on, in any order. A ``BlobWriter`` that was open goes on if no other store had the directory meanwhile: another
  /// store removes its unfinished file. Then the writer throws `.dataMissing`, and the blob has to be written again. Files that no entry
  /// names and no writer of this store has open are removed, as when a store is opened, and so is what is over this store's limits. The
  /// call does nothing in an open store that is not suspended.
  ///
  /// Cost: a comparison of all entries, and a list of the directory. If another process has changed blobs, the index is read anew.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another store of this one, has the directory, and
  ///   `.protectedDataUnavailable`, `.inputOutput`, `.full`: call it again later. After every other error close the store and open it anew:
  ///   `.dataMissing` when another index has taken the place of this store's, `.newerSchema` or `.decodingFailed` for an entry of a newer
  ///   version or a damaged one, `.corrupted`, `.notOurStore`, `.poisoned`, `.closed`. The store stays suspended in all cases.
  public func resume() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    let before = index.snapshot
    try await index.resume()
    guard isSuspended else { return }
    takeIn(changesSince: before)
    // The file of an entry that cannot be read looks like one without an entry. An opening refuses such an index, or heals it.
    if let entry = index.snapshot.undecodable.first {
      await index.suspend()
      throw entry.error
    }
    removeLeftovers()
    isSuspended = false
    suspension.end()
    do throws(RepositoryError) { try await removeVictims() } catch {}  // the next save removes them, or says why it cannot
  }

  /// Removes files without an entry, and ends the writes whose files another process has removed.
  private func removeLeftovers() {
    let writes = tickets.compactMap(\.ticket).filter(\.isWriting)
    do throws(RepositoryError) {
      let found = try BlobOpening.compare(index.snapshot.loadAll(), files, sparing: Set(writes.map(\.temporary)))
      for ticket in writes where !found.spared.contains(ticket.temporary) { ticket.end(.lost) }
    } catch {}  // The next opening removes them. A write whose file is gone fails when it is finished, at the latest.
  }

  /// Drops from memory the blobs that another process has replaced or removed, and notes the sizes and the order of those it has added.
  private func takeIn(changesSince before: RepositorySnapshot<BlobEntry>) {
    let now = index.snapshot
    guard now.revision != before.revision else { return }
    for old in before.loadAll() where now.loadEntry(old.id)?.isSameBlob(as: old) != true { memory.withLock { $0.remove(old.id) } }
    adopt(now.loadAll())
  }

  // MARK: Waiting

  /// Takes the turn of a change as soon as the store is not suspended.
  ///
  /// - Throws: `.suspended` when the store is not resumed within `StoreOptions.suspensionTimeout`, `.cancelled`, `.poisoned` or `.closed`.
  func takeTurn() async throws(RepositoryError) {
    while true {
      await changes.acquire()
      guard suspension.isActive else { return }
      changes.release()
      // An empty write. A suspended index holds it until `resume()`, or until the time is over.
      try await index.write { (_) throws(RepositoryError) in }
    }
  }

  /// Waits until the store is not suspended.
  ///
  /// The store may be suspended again when this returns: call it in a loop until `suspension.isActive` is `false`.
  /// - Throws: as ``takeTurn()``.
  func waitUntilResumed() async throws(RepositoryError) {
    try await takeTurn()
    changes.release()
  }
}

/// Whether a blob store leaves its directory alone, because it is suspended or about to be.
final class BlobSuspension: Sendable {
  /// The number of calls that are about to suspend the store, and one more while it is suspended.
  private let reasons = Atomic(0)

  var isActive: Bool { reasons.load(ordering: .acquiring) > 0 }

  func begin() { reasons.wrappingAdd(1, ordering: .acquiringAndReleasing) }
  func end() { reasons.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
}
