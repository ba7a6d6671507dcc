internal import Dispatch
internal import Foundation
internal import Synchronization

/// Builds indexes in the storage, while commits go on.
///
/// An index that a query needs is built there from the sorted keys of the records, so that no index has to fit into memory. An index that
/// is in memory already is copied there in the background.
final class StoredIndexBuilder: Sendable {
  /// Indexes that are being written to the storage, which commits change as far as they are written.
  private let copying = Mutex<[IndexCopy]>([])
  /// Task that ends when no index is being written to the storage.
  private let copyTask = Mutex<Task<Void, Never>?>(nil)
  /// The first error of each index in the storage that was found not to fit the records, and how often it was found.
  private let refutations = Mutex<[StoredIndexID: (error: RepositoryError, count: Int)]>([:])
  /// Number of keys that one transaction writes, for which commits wait.
  let copiedCount = Atomic(2_000)
  /// Number of bytes of keys that a build has in memory.
  let sortedByteCount = Atomic(8 << 20)

  /// The first error of each index in the storage that was built anew because it did not fit the records, by the index's name.
  var damage: [RepositoryError] {
    refutations.withLock { $0.sorted { $0.key.name < $1.key.name }.map(\.value.error) }
  }

  /// Counts an index in the storage that is about to be built because it does not fit the records.
  func noteRefutation(of body: IndexBody) {
    guard case .stored(let entries) = body, let error = entries.run.countRefutation() else { return }
    refutations.withLock { $0[entries.run.id, default: (error, 0)].count += 1 }
  }

  /// Indexes that are being written to the storage.
  var copies: [IndexCopy] { copying.withLock { $0 } }

  /// Waits until no index is being written to the storage.
  func awaitCopies() async { await copyTask.withLock { $0 }?.value }

  /// Returns the missing indexes of a collection that a pass for some wanted ones can build, too.
  ///
  /// The backend is not asked, because it may be in the middle of a commit, and the caller may be the main actor.
  /// - Returns: No index if the storage can hold none of the wanted ones.
  func missing(besides wanted: [Int], of collection: Int, in core: StoreCore) -> [Int] {
    let (state, indexes) = (core.state, core.state.collections[collection].indexes)
    guard indexes.holdsStubs else { return [] }
    let missing = indexes.storedIDs(of: state.names[collection]).map(\.index).filter { !indexes.isBuilt($0) }
    return missing.contains(where: wanted.contains) ? missing.filter { !wanted.contains($0) } : []
  }

  /// A pass over the records of a collection, which has sorted the keys of indexes, or has failed.
  struct Pass: Sendable {
    /// Positions of the indexes whose changes the collection logs since the pass began.
    fileprivate(set) var begun: [Int] = []
    fileprivate var writes: [(copy: IndexCopy, task: Task<Void, Never>)] = []
    fileprivate var failure: RepositoryError?

    /// Waits for the writing of some indexes, and returns the positions of the indexes that the storage now has.
    ///
    /// - Throws: The error of a pass that has failed.
    func written(_ indexes: [Int]) async throws(RepositoryError) -> Set<Int> {
      if let failure { throw failure }
      var written: Set<Int> = []
      for (copy, task) in writes where indexes.contains(copy.index) {
        await task.value
        if copy.isUsed { written.insert(copy.index) }
      }
      return written
    }

    /// Waits until an index is written, or returns false if it was not.
    func isWritten(_ index: Int) async -> Bool {
      do throws(RepositoryError) { return try await written([index]).contains(index) } catch { return false }
    }
  }

  /// Sorts the keys of indexes in one pass over the records, and begins to write the indexes that the storage can hold.
  ///
  /// The wanted indexes are written first.
  func runPass(for wanted: [Int], and others: [Int], of collection: Int, in core: StoreCore) async -> Pass {
    guard core.state.collections[collection].records.isPaged,
      let begun = await core.executor.run({ self.begin(wanted + others, of: collection, in: core) })
    else { return Pass() }
    let positions = begun.ids.map(\.index)
    do throws(RepositoryError) {
      let copies = try await copies(of: begun, in: collection)
      FreedMemory.giveBack()
      return Pass(begun: positions, writes: copies.map { ($0, write([$0], in: core)) })
    } catch {
      return Pass(begun: positions, failure: error)
    }
  }

  /// Sorts the keys of indexes, and returns a copy for each index whose keys the storage can hold.
  ///
  /// - Throws: The errors of ``IndexSet/sortedKeys(_:over:limit:scratch:)``.
  private func copies(of begun: Build, in collection: Int) async throws(RepositoryError) -> [IndexCopy] {
    let limit = sortedByteCount.load(ordering: .relaxed)
    let sorted = try await DispatchQueue.global(qos: .userInitiated).run { () throws(RepositoryError) in
      try begun.indexes.sortedKeys(begun.ids.map(\.index), over: begun.records, limit: limit, scratch: begun.scratch)
    }
    return zip(begun.ids, sorted).compactMap { id, keys in
      keys.map { IndexCopy(id.id, collection: collection, index: id.index, sorted: $0) }
    }
  }

  /// The indexes that are about to be built over the records of a commit.
  private struct Build: Sendable {
    let ids: [(index: Int, id: StoredIndexID)]
    let records: RecordMap
    let indexes: IndexSet
    let scratch: ScratchFile?
  }

  /// Begins to log changes for the indexes that the storage can hold, or returns `nil` if there are none.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private func begin(_ wanted: [Int], of collection: Int, in core: StoreCore) -> Build? {
    let state = core.state
    guard state.isOpen, let backend = core.backend as? any PagingBackend else { return nil }
    let bodies = state.collections[collection].indexes.bodies
    let missing = wanted.filter { !bodies[$0].isBuilt }
    for index in missing { noteRefutation(of: bodies[index]) }
    let storable = storable(missing, of: collection, in: core)
    // The writes are in the order of the wanted indexes.
    let ids = wanted.compactMap { index in storable.first { $0.index == index } }
    if ids.isEmpty { return nil }
    // Without a scratch file, the disk is probably full, and has no room for an index either.
    let scratch: ScratchFile?
    do throws(RepositoryError) { scratch = try backend.makeScratchFile().map { ScratchFile($0) } } catch { return nil }
    return core.updateCollection(collection) { state in
      for (index, _) in ids { state.indexes.startBuilding(index) }
      return Build(ids: ids, records: state.records, indexes: state.indexes, scratch: scratch)
    }
  }

  /// Returns the identities of some indexes, without the indexes that the storage cannot hold.
  private func storable(_ indexes: [Int], of collection: Int, in core: StoreCore) -> [(index: Int, id: StoredIndexID)] {
    let state = core.state
    guard state.collections[collection].records.isPaged, (core.backend as? any PagingBackend)?.storesIndexes == true else { return [] }
    // A type that decodes a record to other values each time would refute each copy.
    let refuted = refutations.withLock { $0.filter { $0.value.count > 1 } }
    return state.collections[collection].indexes.storedIDs(of: state.names[collection])
      .filter { indexes.contains($0.index) && refuted[$0.id] == nil }
  }

  /// Copies indexes that were built in memory to the storage, in the background, so that later openings need not build them.
  ///
  /// Each transaction copies a part of the keys between two commits. If copying fails, the index stays in memory, and the next store that
  /// builds it tries again. A unique index with duplicates stays in memory, too. An opening that finds a unique index in the storage thus
  /// knows that there are none.
  func copySoon(_ indexes: [Int], of collection: Int, in core: StoreCore) {
    let copies = storable(indexes, of: collection, in: core).map { IndexCopy($0.id, collection: collection, index: $0.index) }
    if !copies.isEmpty { write(copies, in: core) }
  }

  /// Writes indexes to the storage, one after the other, and returns the task that does so.
  @discardableResult
  private func write(_ copies: [IndexCopy], in core: StoreCore) -> Task<Void, Never> {
    copyTask.withLock { last in
      // One index is written after the other, so that commits do not wait for two of them.
      let task = Task(priority: .utility) { [weak core, last] in
        await last?.value
        for copy in copies {
          // From now on, a write of another device that makes two records equal ends the copy. An earlier one has been published.
          await core?.executor.run { self.copying.withLock { $0.append(copy) } }
          if core?.state.collections[copy.collection].indexes.hasDuplicates(copy.index) == true { copy.giveUp() }
          // The store is referenced only for the time of one transaction, so that a store whose last user is gone is released at once.
          while let executor = core?.executor, await executor.run({ [weak core] in self.extend(copy, in: core) }) {}
        }
      }
      last = task
      return task
    }
  }

  /// Copies the indexes in memory again whose copies a suspension has ended.
  func resumeCopies(in core: StoreCore) {
    for (position, collection) in core.state.collections.enumerated() where collection.records.isPaged {
      let indexes = collection.indexes.bodies.indices.filter { index in
        switch collection.indexes.bodies[index] {
        case .followed, .ordered: true
        case .absent, .building, .stored, .geo, .text: false
        }
      }
      copySoon(indexes, of: position, in: core)
    }
  }
}

/// The transactions that write an index. Each of them runs on the store's executor, which serializes all commits.
extension StoredIndexBuilder {
  /// Writes the next keys of an index, or ends the copy after the last key.
  ///
  /// - Returns: False if the copy has ended.
  private func extend(_ copy: IndexCopy, in core: StoreCore?) -> Bool {
    if let core {
      switch copyMore(copy, in: core) {
      case .unfinished: return true
      case .complete:
        let replaced = use(copy, in: core)
        // The box is the only owner of the tree. `take()` frees the tree, which takes time for each of its entries. After that,
        // `giveBack()` returns the memory to the system.
        DispatchQueue.global(qos: .utility).async {
          replaced?.take()
          FreedMemory.giveBack()
        }
      case .ended: break
      }
    }
    // The copy ends in the block of the executor in which the index becomes the stored one, so no commit edits its keys twice.
    copying.withLock { $0.removeAll { $0 === copy } }
    return false
  }

  /// The state of a copy after one more part.
  private enum CopyProgress {
    case unfinished, complete, ended
  }

  private func copyMore(_ copy: IndexCopy, in core: StoreCore) -> CopyProgress {
    let state = core.state
    guard state.isOpen, !copy.isGivenUp, let backend = core.backend as? any PagingBackend else { return .ended }
    let (count, definition) = (
      copiedCount.load(ordering: .relaxed), state.collections[copy.collection].indexes.definitions[copy.index]
    )
    // A suspension may have left two copies of one index waiting.
    if case .stored = state.collections[copy.collection].indexes.bodies[copy.index] { return .ended }
    do throws(RepositoryError) {
      if copy.isSorted {
        guard let isLeft = moveLog(to: copy, in: core) else { return giveUp(copy, in: backend) }
        if isLeft { return .unfinished }
      }
      guard let keys = try copy.isSorted ? copy.nextKeys(count, definition) : keysInMemory(of: copy, count, in: state) else {
        return giveUp(copy, in: backend)
      }
      if !keys.isEmpty || copy.end == nil {
        try backend.extendIndex(copy.id, by: keys, isFirst: copy.end == nil)
        copy.append(keys)
        // After the last key, the index is completed in the same block. Otherwise a commit could add a key again that these keys have left
        // out as a removed one.
        if keys.count == count { return .unfinished }
      }
      try backend.storeBoundaries(copy.boundaries, of: copy.id)
    } catch {
      // A checkpoint or a commit of another process may have dropped the part that was copied.
      if error.code == .unsupported, copy.restart() { return .unfinished }
      return giveUp(copy, in: backend)
    }
    return .complete
  }

  /// Returns the next keys of an index in memory, or `nil` if the storage cannot hold the index.
  private func keysInMemory(of copy: IndexCopy, _ count: Int, in state: StoreState) -> [Data]? {
    let collection = state.collections[copy.collection]
    // A record without an entry, which does not decode, may have one in a later version of the app.
    guard let tree = collection.indexes.tree(copy.index), tree.count == collection.records.count else { return nil }
    let start = copy.end.map { end in tree.rank(whereFirst: { end.precedes(IndexKey.bytes(of: $0)) }) } ?? 0
    var keys: [Data] = []
    tree.forEach(in: start..<min(start + count, tree.count)) { entry in
      keys.append(IndexKey.bytes(of: entry))
      return keys[keys.count - 1].count <= IndexKey.limit
    }
    return (keys.last?.count ?? 0) <= IndexKey.limit ? keys : nil
  }

  /// Moves changes that commits have logged to a copy of sorted keys.
  ///
  /// - Returns: True if a part of the log is left. `nil` if the storage cannot hold the index, or if it is in memory by now.
  private func moveLog(to copy: IndexCopy, in core: StoreCore) -> Bool? {
    let indexes = core.state.collections[copy.collection].indexes
    // A write may have built the index in memory.
    guard case .building(var log) = indexes.bodies[copy.index] else { return nil }
    if log.isEmpty { return false }
    // Commits wait for each part of a long log. The parts grow with the log, so that commits cannot outrun them.
    let part = log.removeFirst(max(8 * copiedCount.load(ordering: .relaxed), log.count / 2))
    guard copy.follow(part, indexes.definitions[copy.index]) else { return nil }
    let rest = log
    core.updateCollection(copy.collection) { $0.indexes.bodies[copy.index] = .building(rest) }
    return !rest.isEmpty
  }

  private func giveUp(_ copy: IndexCopy, in backend: any PagingBackend) -> CopyProgress {
    copy.giveUp()
    // The next commit of the collection drops the index, too.
    do throws(RepositoryError) { try backend.dropIndex(copy.id) } catch {}
    return .ended
  }

  /// Uses the complete index in the storage from now on, and returns the one in memory.
  private func use(_ copy: IndexCopy, in core: StoreCore) -> TransferBox<IndexBody>? {
    let before = core.state.collections[copy.collection].records.unchangedBase
    core.moveBase(isForced: true)
    let collection = core.state.collections[copy.collection]
    // Without a base of the newest commit, an index in memory stays there, and the next commit drops its copy.
    guard let base = collection.records.unchangedBase, base !== before, base.commit.number == core.state.commit else { return nil }
    let run = StoredRun(copy.id, collection.indexes.definitions[copy.index], in: base)
    copy.markUsed()
    return TransferBox(
      core.updateCollection(copy.collection) { state in
        let old = state.indexes.bodies[copy.index]
        state.indexes.bodies[copy.index] = .stored(StoredEntries(run))
        if state.indexes.definitions[copy.index].isUnique { state.indexes.enforcedIndexes.insert(copy.index) }
        return old
      })
  }
}
