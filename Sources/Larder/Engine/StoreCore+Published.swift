internal import Synchronization

/// The published state: what readers see, at one commit.
extension StoreCore {
  /// The state that readers see now: a copy of some pointers under a lock that is held for nothing else.
  var state: StoreState { published.withLock { $0 } }

  /// Returns the position of a collection, which is made when it is new.
  ///
  /// Nothing is written until its first record is.
  /// - Throws: `.unsupported` when it is read as another type already: the records keep the values that they were decoded to.
  func collection<Item>(named name: String, of type: Item.Type) throws(RepositoryError) -> Int {
    let isSameType = itemTypes.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
    guard itemTypes.withLock({ $0[name] != ObjectIdentifier(Renaming.self) }) else {
      throw RepositoryError(
        .unsupported,
        "expected a collection under its present name, found \(name), whose records have moved to another; open it under that one",
        file: backend.name)
    }
    guard isSameType else {
      throw RepositoryError(
        .unsupported, "expected the type that the collection \(name) was opened as, found \(type): use the same type, or reopen the store")
    }
    return collection(named: name)
  }

  /// Returns the position of a collection, which is made when it is new.
  func collection(named name: String) -> Int {
    published.withLock { state in
      if let position = state.names.firstIndex(of: name) { return position }
      state.names.append(name)
      state.collections.append(CollectionState())
      return state.names.count - 1
    }
  }

  /// Returns the records and indexes of a collection at one commit.
  /// - Throws: `.closed`.
  func collectionState(_ collection: Int) throws(RepositoryError) -> CollectionState {
    let (state, isClosed) = published.withLock { state in (state.collections[collection], state.isClosed) }
    if isClosed { throw .storeClosed }
    return state
  }

  /// Returns the records of a collection, for reading.
  /// - Throws: `.closed`.
  func records(of collection: Int) throws(RepositoryError) -> RecordMap {
    // Not by way of `collectionState`: a look-up of one record costs little more than this lock.
    let (map, isClosed) = published.withLock { state in (state.collections[collection].records, state.isClosed) }
    if isClosed { throw .storeClosed }
    return map
  }

  /// The number of the publication that readers see now; `nil` once the store is closed.
  ///
  /// Cost: that of the lock.
  var openPublication: UInt64? { published.withLock { $0.isClosed ? nil : $0.publication } }

  /// Publishes the collections as they are after a commit that is durable.
  ///
  /// On the executor only.
  /// - Returns: The state before. What only it keeps alive is released with it: not under the lock, and best when no caller waits.
  @discardableResult func publish(_ collections: [CollectionState], commit: Revision) -> StoreState {
    published.withLock { current in
      let old = current
      current.commit = commit.number
      current.publication += 1
      // A collection may have been added since these were taken; it is empty, and stays. So do indexes that were declared: none of them has
      // been built, since only the executor begins that.
      for (position, collection) in collections.enumerated() {
        current.collections[position] = collection
        if !collection.indexes.areDeclared { current.collections[position].indexes = old.collections[position].indexes }
      }
      return old
    }
  }

  /// Makes the look-ups of collections quick again that have changed much, and nothing else of them.
  ///
  /// Called after the callers of a commit were resumed: after a large batch it takes as long as sorting all records. A store that is about
  /// to be suspended has no time for that, and does it after a later commit.
  ///
  /// On the executor only.
  func rebaseIfWorthwhile() {
    for (position, collection) in state.collections.enumerated() {
      guard let rebased = collection.rebasedIfWorthwhile(unless: { suspensions.load(ordering: .relaxed) > 0 }) else { continue }
      _ = published.withLock { state in
        let old = state.collections[position]
        state.collections[position].take(rebased)
        return old
      }
    }
  }

  /// Refuses all writes from now on, if an error is that of a sync: which commits are durable is not known any more.
  func notePoison(_ error: RepositoryError) {
    guard error.code == .outcomeUnknown || error.code == .poisoned else { return }
    published.withLock { if case .open = $0.condition { $0.condition = .poisoned(error) } }
  }
}

extension RepositoryError {
  /// The error for any use of a closed store.
  static var storeClosed: RepositoryError { RepositoryError(.closed, "the store was closed; open it again") }
}
