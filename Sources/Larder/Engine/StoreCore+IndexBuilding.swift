internal import Dispatch
internal import Synchronization

extension StoreCore {
  /// Declares the indexes of a collection, as its first repository has them.
  ///
  /// - Throws: `.unsupported` when another repository of the collection has declared others.
  func declare(_ indexes: IndexSet, for collection: Int) throws(RepositoryError) {
    let isRefused = published.withLock { state in
      let present = state.collections[collection].indexes
      if present.areDeclared { return !present.isSame(as: indexes) }
      state.collections[collection].indexes = indexes
      return false
    }
    if isRefused {
      throw RepositoryError(
        .unsupported, "expected the indexes that the collection was opened with, found others: declare the same, or reopen the store")
    }
  }

  /// Builds an index that is not there yet, while writes go on; calls for the same one share the work.
  func buildIndex(_ index: Int, of collection: Int) async {
    let build = indexBuilds.withLock { builds in
      let address = IndexAddress(collection: collection, index: index)
      if let running = builds[address] { return running }
      let task = Task { await self.build(index, of: collection) }
      builds[address] = task
      return task
    }
    await build.value
  }

  private func build(_ index: Int, of collection: Int) async {
    // From here on, the state logs what changes for the index that is being built.
    let begun: (slots: [RecordSlot], indexes: IndexSet)? = await executor.run {
      let begun: (RecordMap, IndexSet)? = self.published.withLock { state in
        guard !state.collections[collection].indexes.isBuilt(index) else { return nil }
        state.collections[collection].indexes.startBuilding(index)
        return (state.collections[collection].records, state.collections[collection].indexes)
      }
      return begun.map { ($0.0.ordered(), $0.1) }
    }
    guard let begun else { return }
    let body = await DispatchQueue.global(qos: .userInitiated).run { begun.indexes.body(index, over: begun.slots) }
    await executor.run {
      var indexes = self.state.collections[collection].indexes
      indexes.finishBuilding(index, body)
      let finished = indexes
      self.published.withLock { $0.collections[collection].indexes = finished }
    }
  }
}

/// The address of an index: its collection, and its position among the declared ones.
struct IndexAddress: Hashable, Sendable {
  let collection: Int
  let index: Int
}
