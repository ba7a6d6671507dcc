internal import Dispatch
internal import Foundation
internal import Synchronization

/// Builds the indexes of a store and applies later changes to them, while commits go on.
///
/// An index is built when a query first uses it. Before its first use, an index exists only as a declaration in its collection.
final class IndexBuilder: Sendable {
  /// Tasks that build an index, by the collection and position of the index, which return the error of a failed build.
  ///
  /// A finished task is removed, because a commit may remove an index in the storage, and a later query then builds it again.
  private let builds = Mutex<[Address: Task<RepositoryError?, Never>]>([:])
  /// True while changes in index logs wait to be applied to the indexes, or are being applied.
  ///
  /// `isSettling` is read and set only on the store's executor.
  private let isSettling = Atomic(false)
  /// Number of times that automatic indexes were removed.
  ///
  /// An index that a query has called for before the removal is not built after it.
  private let removals = Atomic<UInt64>(0)
  /// Pause in seconds before logged changes are applied to indexes, during which the changes of several commits are gathered.
  ///
  /// Waking a thread for each commit would cost more than applying the changes together.
  private static let pauseBeforeSettling = 0.1

  /// Indexes that are being copied to the storage, which commits change as far as they are copied.
  private let copying = Mutex<[IndexCopy]>([])
  /// Task that ends when the indexes that were built so far are copied to the storage.
  private let copyTask = Mutex<Task<Void, Never>?>(nil)
  /// The first error of each index in the storage that was found not to fit the records, and how often it was found.
  private let refutations = Mutex<[StoredIndexID: (error: RepositoryError, count: Int)]>([:])
  /// Collections whose lost unique indexes could not be built.
  private let failures = Mutex<Set<Int>>([])
  /// Number of keys that one transaction copies, for which commits wait.
  let copiedCount = Atomic(2_000)

  /// Address of an index: the position of its collection, and the position of the index among the collection's declared indexes.
  private struct Address: Hashable, Sendable {
    let collection: Int
    let index: Int
  }

  /// Builds those of the given indexes that are not built yet, in one pass over the records, while commits go on.
  ///
  /// If several calls need the same index, they await the same build.
  /// - Throws: The errors of ``IndexSet/built(_:over:)``.
  func build(_ indexes: [Int], of collection: Int, in core: StoreCore) async throws(RepositoryError) {
    let builds = builds.withLock { builds in
      let addresses = indexes.map { Address(collection: collection, index: $0) }
      let missing = addresses.filter { builds[$0] == nil }.map(\.index)
      // The task that builds an index is created under the lock. Without the lock, two queries could both find the index missing and build
      // it twice.
      if !missing.isEmpty {
        let task = Task { await self.buildMissing(missing, of: collection, in: core) }
        for index in missing { builds[Address(collection: collection, index: index)] = task }
      }
      return addresses.compactMap { builds[$0] }
    }
    for build in builds { if let failure = await build.value { throw failure } }
  }

  /// Builds indexes, and returns the error of a build that has failed.
  private func buildMissing(_ wanted: [Int], of collection: Int, in core: StoreCore) async -> RepositoryError? {
    var failure: RepositoryError?
    do throws(RepositoryError) { try await Self.build(wanted, of: collection, in: core) } catch {
      failure = error
      await core.executor.run {
        core.updateCollection(collection) { state in for index in wanted { state.indexes.cancelBuilding(index) } }
      }
    }
    builds.withLock { builds in for index in wanted { builds[Address(collection: collection, index: index)] = nil } }
    return failure
  }

  private static func build(_ wanted: [Int], of collection: Int, in core: StoreCore) async throws(RepositoryError) {
    // The records are copied and the index's change log is started in one executor block. If a commit ran between the copy and the start of
    // the log, its changes would be missing in the index.
    let begun: (wanted: [Int], records: RecordMap, indexes: IndexSet)? = await core.executor.run {
      core.updateCollection(collection) { state in
        // Another build may have ended since the caller read the state.
        let wanted = wanted.filter { !state.indexes.isBuilt($0) }
        if wanted.isEmpty { return nil }
        for index in wanted {
          core.indexBuilder.noteRefutation(of: state.indexes.bodies[index])
          state.indexes.startBuilding(index)
        }
        return (wanted, state.records, state.indexes)
      }
    }
    guard let begun else { return }
    let wanted = begun.wanted
    let bodies = try await DispatchQueue.global(qos: .userInitiated).run { () throws(RepositoryError) in
      try begun.indexes.built(wanted, over: begun.records)
    }
    await core.executor.run { finish(wanted, bodies, of: collection, definedBy: begun.indexes, in: core) }
    core.indexBuilder.copySoon(wanted, of: collection, in: core)
  }

  /// Whether the lost unique indexes of a collection could not be built, so that only a write that needs one of them tries again.
  func hasFailed(_ collection: Int) -> Bool { failures.withLock { $0.contains(collection) } }
  func noteFailure(of collection: Int) { _ = failures.withLock { $0.insert(collection) } }

  /// Counts an index in the storage that is about to be built in memory because it does not fit the records.
  func noteRefutation(of body: IndexBody) {
    guard case .stored(let entries) = body, let error = entries.run.countRefutation() else { return }
    refutations.withLock { $0[entries.run.id, default: (error, 0)].count += 1 }
  }

  /// Publishes indexes that were built over the records of an earlier commit, with the changes that were logged meanwhile.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private static func finish(
    _ wanted: [Int], _ bodies: [IndexBody], of collection: Int, definedBy definitions: IndexSet, in core: StoreCore
  ) {
    // The logged changes are applied outside the lock of the published state, so that readers are not blocked meanwhile.
    var indexes = core.state.collections[collection].indexes
    // An automatic index may have been removed, and added anew with another log of changes, while it was built.
    for (index, body) in zip(wanted, bodies) where indexes.isBuilding(index, definitions.definitions[index]) {
      indexes.finishBuilding(index, body)
    }
    let finished = indexes
    core.updateCollection(collection) { $0.indexes = finished }
  }

  /// Number of times that automatic indexes were removed, to be read when a query begins.
  var removalCount: UInt64 { removals.load(ordering: .relaxed) }

  /// Builds an automatic index in the background, unless the collection has an index on the same properties already.
  ///
  /// - Parameter removals: ``removalCount`` when the query began that calls for the index.
  func buildAutomatic(_ definition: IndexDefinition, of collection: Int, after removals: UInt64, in core: StoreCore) {
    // The task holds no reference to the store during the build, so that a store whose last user is gone releases its files at once.
    Task(priority: .utility) { [weak core] in
      guard let begun = await core?.indexBuilder.beginAutomatic(definition, of: collection, after: removals, in: core) else { return }
      let (wanted, indexes, records) = ([begun.position], begun.indexes, begun.records)
      let bodies: [IndexBody]
      do throws(RepositoryError) {
        bodies = try await DispatchQueue.global(qos: .utility).run { () throws(RepositoryError) in
          try indexes.built(wanted, over: records)
        }
      } catch {
        // No caller waits for an automatic index. The next query that sorts the records calls for it again.
        await core?.executor.run { [weak core] in
          core?.updateCollection(collection) { state in
            for index in wanted where state.indexes.isBuilding(index, indexes.definitions[index]) { state.indexes.cancelBuilding(index) }
          }
        }
        return
      }
      await core?.executor.run { [weak core] in
        guard let core, core.openPublication != nil else { return }
        Self.finish(wanted, bodies, of: collection, definedBy: indexes, in: core)
      }
    }
  }

  /// An automatic index that is about to be built over the records of a commit.
  private struct AutomaticBuild: Sendable {
    let position: Int
    let records: RecordMap
    let indexes: IndexSet
  }

  /// Adds an automatic index to a collection, and begins to log changes for its build.
  ///
  /// - Returns: `nil` if automatic indexes were removed since the query called for this one, or if the index is not added.
  private func beginAutomatic(
    _ definition: IndexDefinition, of collection: Int, after removals: UInt64, in core: StoreCore?
  ) async -> AutomaticBuild? {
    guard let core else { return nil }
    // The definition is added on the executor, because the commit of a group that is being staged would publish the indexes without it.
    let begun: (build: AutomaticBuild, replaced: IndexBody)? = await core.executor.run {
      guard self.removalCount == removals, core.openPublication != nil else { return nil }
      return core.updateCollection(collection) { state in
        guard let (position, replaced) = state.indexes.addAutomatic(definition) else { return nil }
        return (AutomaticBuild(position: position, records: state.records, indexes: state.indexes), replaced)
      }
    }
    // The replaced tree is released here, before the build and not under the lock of the published state, because freeing a tree takes time
    // for each of its entries.
    return begun?.build
  }

  /// Removes the automatic indexes of a collection, also those that are being built or were called for.
  ///
  /// The trees are freed away from the caller's actor, because freeing them takes time for each of their entries.
  @concurrent func removeAutomatic(of collection: Int, in core: StoreCore) async {
    removals.add(1, ordering: .relaxed)
    _ = await core.executor.run {
      core.updateCollection(collection) { state in
        // The app asks for memory, which says nothing about the use of the indexes.
        for definition in state.indexes.definitions { definition.automatic?.allowReturn() }
        return state.indexes.removeAutomatic()
      }
    }
  }

  /// Applies the logged changes to the indexes after 0.1 seconds, so that the changes of several commits are applied together.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func settleSoon(_ core: StoreCore) {
    guard !isSettling.load(ordering: .relaxed), core.state.collections.contains(where: { $0.indexes.keepChanges }) else { return }
    isSettling.store(true, ordering: .relaxed)
    // `settled()` blocks its thread while it applies changes, so it does not run on the store's executor, where commits would wait for it.
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.pauseBeforeSettling) { [weak core] in
      guard let core else { return }
      // The records are not kept for the time of `settled()`, because they would keep an old base of the storage.
      let indexes = core.state.collections.map(\.indexes)
      let settled = indexes.map { $0.settled() }
      core.executor.queue.async { [weak core] in core.map { $0.indexBuilder.publish(settled, in: $0) } }
    }
  }

  private func publish(_ settled: [[(index: Int, before: FollowedIndex, after: FollowedIndex)]], in core: StoreCore) {
    for (collection, indexes) in settled.enumerated() {
      for (index, before, after) in indexes {
        core.updateCollection(collection) { $0.indexes.settle(index, from: before, to: after) }
      }
    }
    isSettling.store(false, ordering: .relaxed)
    // Commits may have logged more changes while the previous changes were applied.
    settleSoon(core)
  }
}

// MARK: - Copying to the storage

extension IndexBuilder {
  /// The first error of each index in the storage that was built anew because it did not fit the records, by the index's name.
  var damage: [RepositoryError] {
    refutations.withLock { $0.sorted { $0.key.name < $1.key.name }.map(\.value.error) }
  }

  /// Indexes that are being copied to the storage.
  var copies: [IndexCopy] { copying.withLock { $0 } }

  /// Copies indexes that were built in memory to the storage, in the background, so that later openings need not build them.
  ///
  /// Each transaction copies a part of the keys between two commits. If copying fails, the index stays in memory, and the next store that
  /// builds it tries again. A unique index with duplicates stays in memory, too. An opening that finds a unique index in the storage thus
  /// knows that there are none.
  func copySoon(_ indexes: [Int], of collection: Int, in core: StoreCore) {
    let state = core.state
    guard state.collections[collection].records.isPaged, (core.backend as? any PagingBackend)?.storesIndexes == true else { return }
    // A type that decodes a record to other values each time would refute each copy.
    let refuted = refutations.withLock { $0.filter { $0.value.count > 1 } }
    let ids = state.collections[collection].indexes.storedIDs(of: state.names[collection])
      .filter { indexes.contains($0.index) && refuted[$0.id] == nil }
    if ids.isEmpty { return }
    copyTask.withLock { last in
      // One index is copied after the other, so that commits do not wait for two of them.
      last = Task(priority: .utility) { [weak core, last] in
        await last?.value
        for (index, id) in ids {
          let copy = IndexCopy(id, collection: collection, index: index)
          // From now on, a write of another device that makes two records equal ends the copy. An earlier one has been published.
          await core?.executor.run { self.copying.withLock { $0.append(copy) } }
          if core?.state.collections[collection].indexes.hasDuplicates(index) == true { copy.giveUp() }
          // The store is referenced only for the time of one transaction, so that a store whose last user is gone is released at once.
          while let executor = core?.executor, await executor.run({ [weak core] in self.extend(copy, in: core) }) {}
        }
      }
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

  /// Waits until the indexes that were built so far are copied to the storage, or stay in memory.
  func awaitCopies() async { await copyTask.withLock { $0 }?.value }

  /// Copies the next keys of an index, or ends the copy after the last key.
  ///
  /// Must run on the store's executor, which serializes all commits.
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
    guard state.isOpen, !state.isSuspended, !copy.isGivenUp, let backend = core.backend as? any PagingBackend else { return .ended }
    let collection = state.collections[copy.collection]
    // A suspension may have left two copies of one index waiting.
    if case .stored = collection.indexes.bodies[copy.index] { return .ended }
    // A record without an entry, which does not decode, may have one in a later version of the app.
    guard let tree = collection.indexes.tree(copy.index), tree.count == collection.records.count else { return giveUp(copy, in: backend) }
    let start = copy.end.map { end in tree.rank(whereFirst: { end.precedes(IndexKey.bytes(of: $0)) }) } ?? 0
    var keys: [Data] = []
    tree.forEach(in: start..<min(start + copiedCount.load(ordering: .relaxed), tree.count)) { entry in
      keys.append(IndexKey.bytes(of: entry))
      return keys[keys.count - 1].count <= IndexKey.limit
    }
    if let last = keys.last, last.count > IndexKey.limit { return giveUp(copy, in: backend) }
    do throws(RepositoryError) {
      if !keys.isEmpty || copy.end == nil {
        try backend.extendIndex(copy.id, by: keys, isFirst: copy.end == nil)
        copy.append(keys)
        return .unfinished
      }
      try backend.storeBoundaries(copy.boundaries, of: copy.id)
    } catch {
      // A checkpoint or a commit of another process may have dropped the part that was copied.
      if error.code == .unsupported, copy.restart() { return .unfinished }
      return giveUp(copy, in: backend)
    }
    return .complete
  }

  private func giveUp(_ copy: IndexCopy, in backend: any PagingBackend) -> CopyProgress {
    copy.giveUp()
    // The next commit of the collection drops the index, too.
    do throws(RepositoryError) { try backend.dropIndex(copy.id) } catch {}
    return .ended
  }

  /// Replaces an index in memory by its complete copy in the storage, and returns the index.
  private func use(_ copy: IndexCopy, in core: StoreCore) -> TransferBox<IndexBody>? {
    let before = core.state.collections[copy.collection].records.unchangedBase
    core.moveBase(isForced: true)
    let collection = core.state.collections[copy.collection]
    // Without a base of the newest commit, the index stays in memory, and the next commit drops its copy.
    guard let base = collection.records.unchangedBase, base !== before, base.commit.number == core.state.commit else { return nil }
    let run = StoredRun(copy.id, collection.indexes.definitions[copy.index], in: base)
    return TransferBox(
      core.updateCollection(copy.collection) { state in
        let old = state.indexes.bodies[copy.index]
        state.indexes.bodies[copy.index] = .stored(StoredEntries(run))
        return old
      })
  }
}
