/// The state that readers of a store see, at one commit: an immutable value, published whole.
struct StoreState: Sendable {
  /// The newest commit.
  var commit: UInt64
  /// The names of the collections; a collection's position never changes while the store is open.
  var names: [String]
  var collections: [CollectionState]
  var condition: Condition = .open
  /// Whether the backend has given up its locks: reads go on, writes wait.
  var isSuspended = false
  /// The number of times that records were published: as long as it is the same, so are all records.
  var publication: UInt64 = 0

  /// The collections that hold records, by name.
  var contents: [OpenReport.Collection] {
    zip(names, collections).filter { $1.records.count > 0 }.sorted { $0.0 < $1.0 }.map { .init(name: $0, recordCount: $1.records.count) }
  }

  enum Condition: Sendable {
    case open
    /// A sync failed: reads go on, writes are refused.
    case poisoned(RepositoryError)
    case closed
  }

  var isClosed: Bool { if case .closed = condition { true } else { false } }
  /// Whether the backend can be asked to write.
  var isOpen: Bool { if case .open = condition { !isSuspended } else { false } }

  /// Whether writes wait until the store is resumed.
  var holdsWrites: Bool { if case .open = condition { isSuspended } else { false } }

  /// - Throws: `.poisoned`, `.closed` or `.suspended`.
  func checkWritable() throws(RepositoryError) {
    switch condition {
    case .open: if isSuspended { throw .storeSuspended }
    case .poisoned(let cause): throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", underlying: cause)
    case .closed: throw .storeClosed
    }
  }
}
