internal import Dispatch
internal import Synchronization

/// A builder of a store's indexes, which makes them and brings them up to date beside commits.
///
/// An index is built on its first use. Until then its collection keeps only its declaration.
final class IndexBuilder: Sendable {
  /// Tasks that build an index or have built it.
  ///
  /// A finished one stays, so that a later query awaits it at once.
  private let builds = Mutex<[Address: Task<Void, Never>]>([:])
  /// True while logged changes of indexes wait to be applied, or are being applied.
  ///
  /// Read and set on the executor only.
  private let isSettling = Atomic(false)
  /// Seconds for which changes of successive commits are gathered before indexes apply them.
  ///
  /// Waking a thread for each commit costs more.
  private static let pauseBeforeSettling = 0.1

  /// Address of an index: the position of its collection, and its own position among the declared indexes.
  private struct Address: Hashable, Sendable {
    let collection: Int
    let index: Int
  }

  /// Builds indexes that are missing, in one pass over the records, while writes go on.
  ///
  /// Concurrent calls for one index share its build.
  func build(_ indexes: [Int], of collection: Int, in core: StoreCore) async {
    let builds = builds.withLock { builds in
      let addresses = indexes.map { Address(collection: collection, index: $0) }
      let missing = addresses.filter { builds[$0] == nil }.map(\.index)
      // Under the lock, so that two queries do not build one index twice.
      if !missing.isEmpty {
        let task = Task { await Self.build(missing, of: collection, in: core) }
        for index in missing { builds[Address(collection: collection, index: index)] = task }
      }
      return addresses.compactMap { builds[$0] }
    }
    for build in builds { await build.value }
  }

  private static func build(_ wanted: [Int], of collection: Int, in core: StoreCore) async {
    // On the executor, so that no commit comes between the copy of the records and the beginning of the log of later changes.
    let begun: (slots: [RecordSlot], indexes: IndexSet)? = await core.executor.run {
      let begun: (RecordMap, IndexSet)? = core.updateCollection(collection) { state in
        guard wanted.contains(where: { !state.indexes.isBuilt($0) }) else { return nil }
        for index in wanted { state.indexes.startBuilding(index) }
        return (state.records, state.indexes)
      }
      return begun.map { ($0.0.ordered(), $0.1) }
    }
    guard let begun else { return }
    let bodies = await DispatchQueue.global(qos: .userInitiated).run { begun.indexes.built(wanted, over: begun.slots) }
    await core.executor.run {
      // Readers go on while the log is applied: that happens outside the lock.
      var indexes = core.state.collections[collection].indexes
      for (index, body) in zip(wanted, bodies) { indexes.finishBuilding(index, body) }
      let finished = indexes
      core.updateCollection(collection) { $0.indexes = finished }
    }
  }

  /// Applies the changes that indexes have logged, after a pause of 0.1 seconds in which more commits may come.
  ///
  /// Runs on the executor only.
  func settleSoon(_ core: StoreCore) {
    guard !isSettling.load(ordering: .relaxed), core.state.collections.contains(where: { $0.indexes.keepChanges }) else { return }
    isSettling.store(true, ordering: .relaxed)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.pauseBeforeSettling) { [weak core] in
      guard let core else { return }
      let settled = core.state.collections.map { $0.indexes.settled() }
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
    // Commits may have come while these changes were applied.
    settleSoon(core)
  }
}

extension TypedQueryRun {
  /// Builds the indexes that a query can use, where they are missing, and plans the query.
  ///
  /// - Parameters:
  ///   - keyPath: A property whose index is wanted beside the query's own.
  ///   - state: Reads the newest state of the collection. It is called again after each build.
  /// - Throws: as ``init(_:_:_:)``, or the error of `state`.
  nonisolated(nonsending) static func ready(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, of collection: Int,
    in core: StoreCore, _ state: () throws(RepositoryError) -> CollectionState
  ) async throws(RepositoryError) -> Self {
    try query.shape.check()
    while true {
      let state = try state()
      let missing = state.indexes.missing(for: query.shape, alsoUsing: keyPath)
      if missing.isEmpty {
        // A strict query decodes every record: away from the caller's actor where they are many.
        if query.shape.isStrict { _ = await state.records.undecodableCount(coder) }
        return try Self(query, coder, state)
      }
      await core.indexBuilder.build(missing, of: collection, in: core)
    }
  }
}
