internal import Dispatch
internal import Synchronization

/// Builds the indexes of a store and applies later changes to them, while commits go on.
///
/// An index is built when a query first uses it. Before its first use, an index exists only as a declaration in its collection.
final class IndexBuilder: Sendable {
  /// Tasks that build an index or have built it, by the collection and position of the index, which return the error of a failed build.
  ///
  /// A finished task stays in `builds`, so that a later query finds the task and does not build the index again. A task that has failed is
  /// removed, so that a later query tries again.
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
    do throws(RepositoryError) {
      try await Self.build(wanted, of: collection, in: core)
      return nil
    } catch {
      await core.executor.run {
        core.updateCollection(collection) { state in for index in wanted { state.indexes.cancelBuilding(index) } }
      }
      builds.withLock { builds in for index in wanted { builds[Address(collection: collection, index: index)] = nil } }
      return error
    }
  }

  private static func build(_ wanted: [Int], of collection: Int, in core: StoreCore) async throws(RepositoryError) {
    // The records are copied and the index's change log is started in one executor block. If a commit ran between the copy and the start of
    // the log, its changes would be missing in the index.
    let begun: (records: RecordMap, indexes: IndexSet)? = await core.executor.run {
      core.updateCollection(collection) { state in
        guard wanted.contains(where: { !state.indexes.isBuilt($0) }) else { return nil }
        for index in wanted { state.indexes.startBuilding(index) }
        return (state.records, state.indexes)
      }
    }
    guard let begun else { return }
    let bodies = try await DispatchQueue.global(qos: .userInitiated).run { () throws(RepositoryError) in
      try begun.indexes.built(wanted, over: begun.records)
    }
    await core.executor.run { finish(wanted, bodies, of: collection, definedBy: begun.indexes, in: core) }
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
    // Commits may have logged more changes while the previous changes were applied.
    settleSoon(core)
  }
}

extension TypedQueryRun {
  /// Builds the indexes that a query can use and that are not built yet, and returns the planned query.
  ///
  /// - Parameters:
  ///   - keyPath: A property whose index is built besides the indexes that the query uses.
  ///   - state: Closure that returns the newest state of the collection. The closure `state` is called again after each build of indexes.
  /// - Throws: as ``init(_:coder:over:)``, or the error of `state`.
  nonisolated(nonsending) static func ready(
    _ query: Query<Item>, _ coder: RecordCoder<Item>, alsoUsing keyPath: (any AnyKeyPath & Sendable)? = nil, of collection: Int,
    in core: StoreCore, _ state: () throws(RepositoryError) -> CollectionState
  ) async throws(RepositoryError) -> Self {
    try query.shape.check()
    var attempts = 1
    while true {
      let state = try state()
      let missing = state.indexes.missing(for: query.shape, alsoUsing: keyPath)
      if missing.isEmpty {
        // A strict query decodes every record of the collection. `undecodableCount` decodes many records on other threads, so that the
        // caller's actor is not blocked.
        if query.shape.isStrict { _ = try await state.records.undecodableCount(coder) }
        return try Self(query, coder: coder, over: state)
      }
      do throws(RepositoryError) { try await core.indexBuilder.build(missing, of: collection, in: core) } catch {
        // A build that takes long beside many writes may outlive the base that it reads.
        guard error.code == .superseded, attempts < 3 else { throw error }
        attempts += 1
      }
    }
  }

  /// Builds an automatic index in the background, if the query has sorted many records without an index.
  ///
  /// Call it after the query has its results, so that the build takes no processor time from the query.
  /// - Parameter removals: ``IndexBuilder/removalCount`` when the query began.
  func keepOrder(of collection: Int, after removals: UInt64, in core: StoreCore) {
    guard core.options.buildsAutomaticIndexes, let index = automaticIndex else { return }
    core.indexBuilder.buildAutomatic(index, of: collection, after: removals, in: core)
  }
}
