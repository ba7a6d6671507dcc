/// A store's records and indexes at one commit, published to readers as one immutable value.
struct StoreState: Sendable {
  /// Number of the newest commit.
  var commit: UInt64
  /// Names of the collections, whose positions do not change while the store is open.
  var names: [String]
  var collections: [CollectionState]
  var condition: Condition = .open
  /// True if the backend has released its locks.
  ///
  /// Reads go on and writes wait.
  var isSuspended = false
  /// Number of publications so far.
  ///
  /// Two states with one number have the same records.
  var publication: UInt64 = 0

  /// Collections that hold records, sorted by name.
  var contents: [OpenReport.Collection] {
    zip(names, collections).filter { $1.records.count > 0 }.sorted { $0.0 < $1.0 }.map { .init(name: $0, recordCount: $1.records.count) }
  }

  enum Condition: Sendable {
    case open
    /// A sync failed. Reads go on, and writes are refused.
    case poisoned(RepositoryError)
    case closed
  }

  var isClosed: Bool { if case .closed = condition { true } else { false } }
  /// True if the backend may write now: the store is not suspended, poisoned or closed.
  var isOpen: Bool { if case .open = condition { !isSuspended } else { false } }

  /// True if writes wait until the store is resumed.
  ///
  /// A poisoned or closed store refuses them at once, also while it is suspended, because no resumption will commit them.
  var holdsWrites: Bool { if case .open = condition { isSuspended } else { false } }

  /// Refuses writes of a store that is suspended, poisoned or closed.
  /// - Throws: `.poisoned`, `.closed` or `.suspended`.
  func checkWritable() throws(RepositoryError) {
    switch condition {
    case .open: if isSuspended { throw .storeSuspended }
    case .poisoned(let cause): throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", underlying: cause)
    case .closed: throw .storeClosed
    }
  }
}
