public import Larder
internal import Synchronization

extension BlobStore {
  /// Gives up the lock of the directory, and keeps the store usable for reading.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call this when the app goes
  /// to the background, and ``resume()`` when it comes back. In between another process may open the directory.
  ///
  /// Blobs in memory and in files are still returned, as of the moment of the call. A file that is gone, damaged or replaced is a miss
  /// without a report, and is left alone, because another process may have changed it. No file is made, changed or removed. Writes,
  /// removals, ``clear()`` and the calls of a ``BlobWriter`` wait for ``resume()``. After 30 s, or when the store is closed, they throw
  /// `.suspended`.
  ///
  /// Every saved blob is durable when this returns. The order of the reads since the last write is in memory only, so it is lost if the
  /// system ends the suspended app. The second call does nothing, and neither does a call on a closed store.
  ///
  /// Cost: the rest of the running change, and the disk operation of a writer that has begun, which is a chunk or the sync of a whole blob.
  /// This does not wait for an open writer or for changes that have not begun.
  public nonisolated(nonsending) func suspend() async {
    // Before the hop to the executor: jobs that are queued there already must see it, and touch no file.
    suspension.begin()
    await suspendInTurn()
  }

  private func suspendInTurn() async {
    await changes.acquire()
    defer { changes.release() }
    // `suspension` counts one call that suspends. A call that changes nothing must take its own back.
    guard !isClosed, !isSuspended else { return suspension.end() }
    isSuspended = true
    await index.suspend()
  }

  /// Takes the lock of the directory again, and reads the changes that another process has made since ``suspend()``.
  ///
  /// Waiting changes go on, in any order. An open ``BlobWriter`` goes on if no other store had the directory meanwhile. Another store
  /// removes the writer's unfinished file. Then the writer throws `.dataMissing`, and you write the blob again. As at an opening, this
  /// removes files that neither an entry names nor a writer of this store has open, and blobs over this store's limits. The call does
  /// nothing in an open store that is not suspended.
  ///
  /// Cost: a comparison of all entries, and a list of the directory. If another process has changed blobs, the index is read again.
  /// - Throws: `.locked` or `.alreadyOpen` while another process or another store of this process has the directory,
  ///   `.protectedDataUnavailable`, `.inputOutput` or `.full`: call it again later. After every other error, close the store and open it
  ///   again. The store stays suspended in all cases. See the article Errors of Larder.
  public func resume() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    let before = index.snapshot
    try await index.resume()
    guard isSuspended else { return }
    takeIn(changesSince: before)
    // The file of an entry that does not decode looks like an orphan and would be removed. An opening refuses or repairs such an index.
    if let entry = index.snapshot.undecodable.first {
      await index.suspend()
      throw entry.error
    }
    // Before the waiting writers go on, so that one whose file is gone fails instead of publishing it.
    removeLeftovers()
    isSuspended = false
    suspension.end()
    do throws(RepositoryError) { try await removeVictims() } catch {}  // the next save removes them, or throws the reason
  }

  /// Removes files without an index entry, and ends the writes whose unfinished files another process has removed.
  private func removeLeftovers() {
    let writes = tickets.compactMap(\.ticket).filter(\.isWriting)
    do throws(RepositoryError) {
      let found = try BlobOpening.compare(index.snapshot.loadAll(), files, sparing: Set(writes.map(\.temporary)))
      for ticket in writes where !found.spared.contains(ticket.temporary) { ticket.end(.lost) }
    } catch {}  // The next opening removes the files. A write whose file is gone fails at the latest when it is finished.
  }

  /// Brings memory, sizes and the order of use up to the index as another process has changed it.
  private func takeIn(changesSince before: RepositorySnapshot<BlobEntry>) {
    let now = index.snapshot
    // Unchanged is the usual case, and spares the comparison of all entries.
    guard now.revision != before.revision else { return }
    for old in before.loadAll() where now.loadEntry(old.id)?.isSameBlob(as: old) != true { memory.withLock { $0.remove(old.id) } }
    adopt(now.loadAll())
  }

  // MARK: Waiting

  /// Acquires ``changes`` as soon as the store is not suspended.
  ///
  /// - Throws: `.suspended` if the store is not resumed within `StoreOptions.suspensionTimeout`, `.cancelled`, `.poisoned` or `.closed`.
  func takeTurn() async throws(RepositoryError) {
    while true {
      await changes.acquire()
      guard suspension.isActive else { return }
      // `resume()` needs the turn, so it must not be held while this call waits.
      changes.release()
      // A suspended index holds this empty write until `resume()` or the timeout, and handles cancellation and `close()` too.
      try await index.write { (_) throws(RepositoryError) in }
    }
  }

  /// Waits until the store is not suspended.
  ///
  /// The store may be suspended again when this returns. Call it in a loop until `suspension.isActive` is `false`.
  /// - Throws: The errors of ``takeTurn()``.
  func waitUntilResumed() async throws(RepositoryError) {
    try await takeTurn()
    changes.release()
  }
}

/// Counter that is above zero while a blob store is suspended or is being suspended, so that nothing touches its directory.
final class BlobSuspension: Sendable {
  /// Number of running calls of `suspend()`, plus one while the store is suspended.
  private let reasons = Atomic(0)

  /// True if the store is suspended or is being suspended.
  var isActive: Bool { reasons.load(ordering: .acquiring) > 0 }

  func begin() { reasons.wrappingAdd(1, ordering: .acquiringAndReleasing) }
  func end() { reasons.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
}
