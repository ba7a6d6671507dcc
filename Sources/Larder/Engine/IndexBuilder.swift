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

  /// The indexes in the storage.
  let stored = StoredIndexBuilder()
  /// Collections whose lost unique indexes could not be built.
  private let failures = Mutex<Set<Int>>([])

  /// Address of an index: the position of its collection, and the position of the index among the collection's declared indexes.
  private struct Address: Hashable, Sendable {
    let collection: Int
    let index: Int
  }

  /// Builds the given indexes, unless they are built, in one pass over the records, while commits go on.
  ///
  /// If several calls need the same index, they await the same build. If the storage can hold one of the indexes, the other indexes that
  /// the storage can hold are built in the same pass, because a pass over records in the storage takes longer than the writing of an index.
  /// A call waits until its own indexes are written, and those that were waiting before.
  /// - Throws: The errors of ``IndexSet/built(_:over:)``.
  func build(_ indexes: [Int], of collection: Int, in core: StoreCore) async throws(RepositoryError) {
    let builds = builds.withLock { builds in
      let addresses = indexes.map { Address(collection: collection, index: $0) }
      let missing = addresses.filter { builds[$0] == nil }.map(\.index)
      // The task that builds an index is created under the lock. Without the lock, two queries could both find the index missing and build
      // it twice.
      if !missing.isEmpty {
        let others = stored.missing(besides: missing, of: collection, in: core)
          .filter { builds[Address(collection: collection, index: $0)] == nil }
        let pass = Task { await self.stored.runPass(for: missing, and: others, of: collection, in: core) }
        let task = Task { await self.buildMissing(missing, after: pass, of: collection, in: core) }
        for index in missing { builds[Address(collection: collection, index: index)] = task }
        for index in others {
          builds[Address(collection: collection, index: index)] = Task(priority: .utility) { [weak core] in
            // The store is not kept for an index for which no query waits.
            if await !pass.value.isWritten(index), let core { await self.cancelBuilding([index], of: collection, in: core) }
            self.builds.withLock { $0[Address(collection: collection, index: index)] = nil }
            return nil
          }
        }
      }
      return addresses.compactMap { builds[$0] }
    }
    for build in builds { if let failure = await build.value { throw failure } }
  }

  /// Builds indexes, and returns the error of a build that has failed.
  private func buildMissing(
    _ wanted: [Int], after pass: Task<StoredIndexBuilder.Pass, Never>, of collection: Int, in core: StoreCore
  ) async -> RepositoryError? {
    defer { builds.withLock { builds in for index in wanted { builds[Address(collection: collection, index: index)] = nil } } }
    let pass = await pass.value
    do throws(RepositoryError) {
      let written = try await pass.written(wanted)
      let others = wanted.filter { !written.contains($0) }
      // The build in memory begins with the records of another commit, and with another log of changes.
      await cancelBuilding(others.filter { pass.begun.contains($0) }, of: collection, in: core)
      if others.isEmpty { return nil }
      // Closing the store ends a pass. A build in memory would go on over the closed store.
      if core.state.isClosed { throw .storeClosed }
      try await Self.buildInMemory(others, of: collection, in: core)
      return nil
    } catch {
      await cancelBuilding(wanted, of: collection, in: core)
      return error
    }
  }

  private func cancelBuilding(_ indexes: [Int], of collection: Int, in core: StoreCore) async {
    if indexes.isEmpty { return }
    await core.executor.run {
      core.updateCollection(collection) { state in for index in indexes { state.indexes.cancelBuilding(index) } }
    }
  }

  private static func buildInMemory(_ wanted: [Int], of collection: Int, in core: StoreCore) async throws(RepositoryError) {
    // The records are copied and the index's change log is started in one executor block. If a commit ran between the copy and the start of
    // the log, its changes would be missing in the index.
    let begun: (wanted: [Int], records: RecordMap, indexes: IndexSet)? = await core.executor.run {
      core.updateCollection(collection) { state in
        // Another build may have ended since the caller read the state.
        let wanted = wanted.filter { !state.indexes.isBuilt($0) }
        if wanted.isEmpty { return nil }
        for index in wanted {
          core.indexBuilder.stored.noteRefutation(of: state.indexes.bodies[index])
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
    core.indexBuilder.stored.copySoon(wanted, of: collection, in: core)
  }

  /// Whether the lost unique indexes of a collection could not be built, so that only a write that needs one of them tries again.
  func hasFailed(_ collection: Int) -> Bool { failures.withLock { $0.contains(collection) } }
  func noteFailure(of collection: Int) { _ = failures.withLock { $0.insert(collection) } }

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
