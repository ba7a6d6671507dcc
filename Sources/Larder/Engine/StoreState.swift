/// A store's records and indexes at one commit, published to readers as one immutable value.
struct StoreState: Sendable {
  /// Number of the newest commit.
  var commit: UInt64
  /// Names of the collections, whose positions do not change while the store is open.
  var names: [String]
  var collections: [CollectionState]
  var condition: Condition = .open
  /// True if the store is suspended, so that the backend holds no locks.
  ///
  /// While the store is suspended, reads go on, and writes wait until the store is resumed.
  var isSuspended = false
  /// Number of times that records were published since the store was opened.
  ///
  /// Two states of a store with the same publication number have the same records.
  var publication: UInt64 = 0

  /// Collections that hold records, sorted by name.
  var contents: [OpenReport.Collection] {
    zip(names, collections).filter { $1.records.count > 0 }.sorted { $0.0 < $1.0 }.map { .init(name: $0, recordCount: $1.records.count) }
  }

  enum Condition: Sendable {
    case open
    /// A sync has failed, so it is unknown which commits are durable. In a poisoned store, reads go on, and writes are refused.
    case poisoned(RepositoryError)
    case closed
  }

  var isClosed: Bool { if case .closed = condition { true } else { false } }
  /// True if the backend accepts writes: the store is not suspended, poisoned or closed.
  var isOpen: Bool { if case .open = condition { !isSuspended } else { false } }

  /// True if new writes are held until the store is resumed.
  ///
  /// A poisoned or closed store refuses writes at once, even while it is suspended, because `resume()` could not commit them.
  var holdsWrites: Bool { if case .open = condition { isSuspended } else { false } }

  /// Throws an error unless the store accepts writes.
  ///
  /// - Throws: `.poisoned` after a failed sync, `.closed` or `.suspended` in a closed or suspended store.
  func checkWritable() throws(RepositoryError) {
    switch condition {
    case .open: if isSuspended { throw .storeSuspended }
    case .poisoned(let cause): throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", underlying: cause)
    case .closed: throw .storeClosed
    }
  }
}
