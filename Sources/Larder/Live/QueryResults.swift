/// An asynchronous sequence of a query's results: the current result, then the newest one as soon as it differs from the last one.
///
/// ```swift
/// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
/// ```
///
/// You get this sequence from ``LocalRepository/results(of:)``. The sequence continues as long as the store is open. In a view, use
/// ``LiveQuery``.
///
/// The query is run once, and then each change of a record is tested against the query. A writer usually waits some tens of microseconds at
/// most for such tests, and longer for the few tests that are running at the end of that time. If more than 4,096 changes wait for their
/// tests, a writer waits until all of them are tested. With a limit, up to four times as many results as offset and limit together, and a
/// few more, are kept in memory. Without a limit, all results are kept in memory.
///
/// Every iterator follows the query on its own, from its first `next` on, and one task at a time may read it.
public struct QueryResults<Item: Codable & Identifiable & Sendable>: AsyncSequence, Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// The result of the query at one commit.
  public typealias Element = [Item]
  /// The error that `next` throws when the query cannot be answered.
  public typealias Failure = RepositoryError

  private let follow: @Sendable () -> LiveResults<Item>?

  init(_ core: StoreCore, collection: Int, coder: RecordCoder<Item>, query: Query<Item>) {
    // The store's core is captured weakly, because a sequence that an app keeps must not keep the store open.
    follow = { [weak core] in core.map { LiveResults($0, collection: collection, coder: coder, query: query) } }
  }

  /// Creates an iterator, which does nothing before its first `next`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(results: follow()) }

  /// An iterator that returns the results to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The result of the query at one commit.
    public typealias Element = [Item]
    /// The error that `next` throws when the query cannot be answered.
    public typealias Failure = RepositoryError

    let results: LiveResults<Item>?

    /// Returns the current result at the first call, and then the newest result as soon as it differs from the last one returned.
    ///
    /// Returns `nil` when the store was closed and the last result was delivered, and when the task is cancelled.
    /// - Throws: `.unsupported` if the query cannot be answered, with the reason. `.decodingFailed` as soon as a record does not decode, if
    ///   the query is ``Query/strict()``. After an error, every later call returns `nil`.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> [Item]? {
      try await results?.next()
    }
  }
}
