internal import Dispatch
internal import Synchronization

extension CommitQueue {
  /// Takes the indexes that a repository declares for a collection.
  ///
  /// - Throws: `.unsupported` when another repository of the collection has declared others.
  func declare(_ indexes: IndexSet, for collection: Int) throws(RepositoryError) {
    let isRefused = published.withLock { state in
      let present = state.collections[collection].indexes
      if present.areDeclared { return !present.isSame(as: indexes) }
      state.collections[collection].indexes = indexes
      return false
    }
    if isRefused { throw RepositoryError(.unsupported, "the collection is open with other indexes already") }
  }

  /// The records and indexes of a collection at one commit.
  /// - Throws: `.closed`.
  func collectionState(_ collection: Int) throws(RepositoryError) -> CollectionState {
    let (state, isClosed) = published.withLock { state in (state.collections[collection], state.isClosed) }
    if isClosed { throw RepositoryError(.closed, "the store was closed") }
    return state
  }

  /// Makes an index that is not there yet, while writes go on; who asks meanwhile waits for the same.
  func buildIndex(_ index: Int, of collection: Int) async {
    let build = indexBuilds.withLock { builds in
      let place = IndexPlace(collection: collection, index: index)
      if let running = builds[place] { return running }
      let task = Task { await self.makeIndex(index, of: collection) }
      builds[place] = task
      return task
    }
    await build.value
  }

  private func makeIndex(_ index: Int, of collection: Int) async {
    // From here on, the state notes what changes for the index that is being made.
    let begun: (slots: [RecordSlot], indexes: IndexSet)? = await executor.run {
      let begun: (RecordMap, IndexSet)? = self.published.withLock { state in
        guard !state.collections[collection].indexes.isBuilt(index) else { return nil }
        state.collections[collection].indexes.startBuilding(index)
        return (state.collections[collection].records, state.collections[collection].indexes)
      }
      return begun.map { ($0.0.ordered(), $0.1) }
    }
    guard let begun else { return }
    let body = await withCheckedContinuation { continuation in
      DispatchQueue.global(qos: .userInitiated).async {
        continuation.resume(returning: begun.indexes.body(index, over: begun.slots))
      }
    }
    await executor.run {
      var indexes = self.state.collections[collection].indexes
      indexes.finishBuilding(index, body)
      let finished = indexes
      self.published.withLock { $0.collections[collection].indexes = finished }
    }
  }
}

/// Which index of which collection.
struct IndexPlace: Hashable, Sendable {
  let collection: Int
  let index: Int
}
