/// An asynchronous sequence of a query's results: the current result, and then the newest result each time the results have changed.
///
/// ```swift
/// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
/// ```
///
/// Call ``LocalRepository/results(of:)`` to create the sequence. The sequence ends when the store is closed or the query fails. In a view,
/// use ``LiveQuery`` instead.
///
/// The query is run once, and then each change of a record is tested against the query. A writer usually waits at most some tens of
/// microseconds for these tests of all sequences together, or longer if a few tests that have begun take longer. If more than 4,096 changes
/// wait to be tested, a writer waits until all of these changes are tested. For a query with a limit, up to four times as many results as
/// offset and limit together, and a few more, are kept in memory. For a query without a limit, all results are kept in memory.
///
/// Every iterator runs and follows the query on its own, from its first call of `next` on. Only one task at a time may read an iterator.
public struct QueryResults<Item: Codable & Identifiable & Sendable>: AsyncSequence, Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// The result of the query at one commit.
  public typealias Element = [Item]
  /// The error that `next` throws when the query cannot be answered.
  public typealias Failure = RepositoryError

  private let follow: @Sendable () -> LiveResults<Item>?

  init(_ core: StoreCore, collection: Int, coder: RecordCoder<Item>, query: Query<Item>) {
    // The closure captures the store's core weakly, because a sequence that an app keeps must not keep the store open.
    follow = { [weak core] in core.map { LiveResults($0, collection: collection, coder: coder, query: query) } }
  }

  /// Creates an iterator, which does nothing before the first call of its `next`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(results: follow()) }

  /// An iterator that returns the results of the query to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The result of the query at one commit.
    public typealias Element = [Item]
    /// The error that `next` throws when the query cannot be answered.
    public typealias Failure = RepositoryError

    let results: LiveResults<Item>?

    /// Returns the current result at the first call, and at later calls the newest result as soon as it differs from the last returned one.
    ///
    /// Returns `nil` when the store was closed and the last result was delivered, and when the task is cancelled.
    /// - Throws: `.unsupported` if the query cannot be answered, with the reason. `.decodingFailed` if the query is ``Query/strict()`` and
    ///   a record cannot be decoded. After an error, every later call returns `nil`.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> [Item]? {
      try await results?.next()
    }
  }
}
