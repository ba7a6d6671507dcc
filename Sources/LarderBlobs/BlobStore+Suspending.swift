public import Larder
internal import Synchronization

extension BlobStore {
  /// Releases the lock of the blob store's directory, and keeps the store usable for reading.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call `suspend()` when the
  /// app goes to the background, and ``resume()`` when the app comes back. Until ``resume()``, another process may open the directory.
  ///
  /// A suspended store still returns the blobs in memory and in files that it had when `suspend()` was called. In a suspended store, a blob
  /// whose file is gone, damaged or replaced counts as missing, without a report, because another process may have changed the file. A
  /// suspended store creates, changes and removes no file. Writes, removals, ``clear()`` and the calls of a ``BlobWriter`` wait for
  /// ``resume()``. Calls that wait for ``resume()`` throw `.suspended` after 30 s, or when the store is closed.
  ///
  /// Every saved blob is durable when `suspend()` returns. Memory alone holds the order of the reads since the last write, so this order is
  /// lost if the system ends the suspended app. A second call of `suspend()`, or a call on a closed store, does nothing.
  ///
  /// Cost: `suspend()` waits for the end of a running change, and of a disk operation that a writer has begun, such as writing a chunk or
  /// syncing a whole blob. `suspend()` does not wait for an open writer or for changes that have not begun.
  public nonisolated(nonsending) func suspend() async {
    // The suspension begins before the call switches to the store's executor, so that jobs that are already in the executor's queue touch
    // no file.
    suspension.begin()
    await suspendInTurn()
  }

  private func suspendInTurn() async {
    await changes.acquire()
    defer { changes.release() }
    // The counter `suspension` holds one for a suspended store. A call of `suspend()` that does not suspend the store must subtract the one
    // that it has added.
    guard !isClosed, !isSuspended else { return suspension.end() }
    isSuspended = true
    await index.suspend()
  }

  /// Takes the lock of the directory again, and reads the changes that another process has made since ``suspend()``.
  ///
  /// Writes and removals that have waited for `resume()` go on, in any order. An open ``BlobWriter`` goes on if no other store has opened
  /// the directory meanwhile. Another store that opens the directory removes the writer's unfinished file. A ``BlobWriter`` whose file was
  /// removed throws `.dataMissing`, and you must write its blob again. Like an opening, `resume()` removes the least recently used blobs if
  /// the store is over its limits. `resume()` also removes files that no index entry names and no writer of this store has open. In an open
  /// store that is not suspended, `resume()` does nothing.
  ///
  /// Cost: a comparison of all index entries with the list of the directory's files. If another process has changed blobs, the index is
  /// read again.
  /// - Throws: `.locked` or `.alreadyOpen` while another process or another store of this process has the directory,
  ///   `.protectedDataUnavailable`, `.inputOutput` or `.full`: call `resume()` again later. After every other error, close the store and
  ///   open it again. The store stays suspended after every error of `resume()`. See the article Errors of Larder.
  public func resume() async throws(RepositoryError) {
    await changes.acquire()
    defer { changes.release() }
    let before = index.snapshot
    try await index.resume()
    guard isSuspended else { return }
    takeIn(changesSince: before)
    // The file of an index entry that does not decode looks like a file without an entry, and would be removed below. Therefore the store
    // stays suspended if an index entry does not decode. Opening the store again repairs an index with an undecodable entry.
    if let entry = index.snapshot.undecodable.first {
      await index.suspend()
      throw entry.error
    }
    // The directory is compared with the index before the waiting writers go on, so that a writer whose file is gone throws `.dataMissing`.
    removeLeftovers()
    isSuspended = false
    suspension.end()
    do throws(RepositoryError) { try await removeVictims() } catch {}  // the next save removes the blobs over the limits, or throws
  }

  /// Removes files without an index entry, and ends the writes whose unfinished files another process has removed.
  private func removeLeftovers() {
    let writes = tickets.compactMap(\.ticket).filter(\.isWriting)
    do throws(RepositoryError) {
      let found = try BlobOpening.compare(index.snapshot.loadAll(), files, sparing: Set(writes.map(\.temporary)))
      for ticket in writes where !found.spared.contains(ticket.temporary) { ticket.end(.lost) }
    } catch {}  // The next opening removes the files. A write whose file is gone fails when it is finished.
  }

  /// Updates the blobs in memory, the sizes and the order of use after another process has changed the index.
  private func takeIn(changesSince before: RepositorySnapshot<BlobEntry>) {
    let now = index.snapshot
    // Usually no other process has changed the index, and `takeIn` returns without comparing all entries.
    guard now.revision != before.revision else { return }
    for old in before.loadAll() where now.loadEntry(old.id)?.isSameBlob(as: old) != true { memory.withLock { $0.remove(old.id) } }
    adopt(now.loadAll())
  }

  // MARK: Waiting

  /// Acquires ``changes``, the lock of all changes, as soon as the store is not suspended.
  ///
  /// - Throws: `.suspended` if the store is not resumed within `StoreOptions.suspensionTimeout`, `.cancelled`, `.poisoned` or `.closed`.
  func takeTurn() async throws(RepositoryError) {
    while true {
      await changes.acquire()
      guard suspension.isActive else { return }
      // `resume()` acquires the lock `changes` too, so `takeTurn()` must not hold the lock while it waits.
      changes.release()
      // A suspended index holds this empty write back until `resume()` or the timeout, and ends it on cancellation or `close()`.
      try await index.write { (_) throws(RepositoryError) in }
    }
  }

  /// Waits until the store is not suspended.
  ///
  /// The store may be suspended again when this method returns. Call `waitUntilResumed()` in a loop until `suspension.isActive` is `false`.
  /// - Throws: The errors of ``takeTurn()``.
  func waitUntilResumed() async throws(RepositoryError) {
    try await takeTurn()
    changes.release()
  }
}

/// Counter that is above zero while a blob store is suspended or is being suspended, so that no code changes its directory.
final class BlobSuspension: Sendable {
  /// Number of running calls of `suspend()`, plus one while the store is suspended.
  private let reasons = Atomic(0)

  /// True if the store is suspended or is being suspended.
  var isActive: Bool { reasons.load(ordering: .acquiring) > 0 }

  func begin() { reasons.wrappingAdd(1, ordering: .acquiringAndReleasing) }
  func end() { reasons.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
}
