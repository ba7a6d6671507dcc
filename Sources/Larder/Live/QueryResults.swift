/// The results of a query, now and whenever they differ, for as long as the store is open; from ``LocalRepository/results(of:)``.
///
/// ```swift
/// for try await best in spots.results(of: Query().sorted(by: \.rating, .reverse).limit(20)) { show(best) }
/// ```
///
/// The query is run once; after that each change is tested against it, for which writers wait some tens of microseconds
/// at most, and for the few tests that run then. With a limit, up to four times as many results as offset and limit together
/// are kept in memory, and a few more; without one, all of them.
///
/// Every iterator follows the query for itself, from its first `next` on, and has one reader.
public struct QueryResults<Item: Codable & Identifiable & Sendable>: AsyncSequence, Sendable
where Item.ID: Hashable & Codable & Sendable {
  /// The result of the query at one commit.
  public typealias Element = [Item]
  /// The error that `next` throws when the query cannot be answered.
  public typealias Failure = RepositoryError

  private let follow: @Sendable () -> LiveResults<Item>?

  init(_ core: StoreCore, _ collection: Int, _ coder: RecordCoder<Item>, _ query: Query<Item>) {
    follow = { [weak core] in core.map { LiveResults($0, collection, coder, query) } }
  }

  /// Makes an iterator, which does nothing before its first `next`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(results: follow()) }

  /// An iterator that gives the results to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The result of the query at one commit.
    public typealias Element = [Item]
    /// The error that `next` throws when the query cannot be answered.
    public typealias Failure = RepositoryError

    let results: LiveResults<Item>?

    /// Returns the current result at the first call; then the newest one, as soon as it differs from what was given before.
    ///
    /// Returns `nil` when the store was closed and the last difference was delivered, and when the task is cancelled.
    /// - Throws: `.unsupported` when the query cannot be answered, with the reason; `.decodingFailed` as soon as a record does not decode,
    ///   if the query is ``Query/strict()``; then the sequence is at its end.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> [Item]? {
      try await results?.next()
    }
  }
}
