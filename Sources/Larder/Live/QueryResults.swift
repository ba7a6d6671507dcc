/// An asynchronous sequence of a query's results: the current result, then the newest one whenever it differs.
///
/// ```swift
/// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
/// ```
///
/// You get it from ``LocalRepository/results(of:)``. It goes on for as long as the store is open. In a view, use ``LiveQuery``.
///
/// The query is run once, and then each change is tested against it. Writers wait for these tests some tens of microseconds at most, and
/// longer only for the few tests that are running then. With a limit, up to four times as many results as offset and limit together, and a
/// few more, are kept in memory. Without a limit, all results are.
///
/// Every iterator follows the query by itself, from its first `next` on, and has one reader.
public struct QueryResults<Item: Codable & Identifiable & Sendable>: AsyncSequence, Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// The result of the query at one commit.
  public typealias Element = [Item]
  /// The error that `next` throws when the query cannot be answered.
  public typealias Failure = RepositoryError

  private let follow: @Sendable () -> LiveResults<Item>?

  init(_ core: StoreCore, _ collection: Int, _ coder: RecordCoder<Item>, _ query: Query<Item>) {
    // Weak, because a sequence that is kept must not keep the store open.
    follow = { [weak core] in core.map { LiveResults($0, collection, coder, query) } }
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
    /// Returns `nil` when the store was closed and the last difference was delivered, and when the task is cancelled.
    /// - Throws: `.unsupported` if the query cannot be answered, with the reason. `.decodingFailed` as soon as a record does not decode, if
    ///   the query is ``Query/strict()``. After an error, the sequence is at its end.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> [Item]? {
      try await results?.next()
    }
  }
}
