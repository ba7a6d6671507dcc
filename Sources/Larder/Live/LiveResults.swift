// The folder Live/ holds live results: a query is run once, and then each change of a record is merged into the query's results.
// Invariant: each result that a reader receives is the result that a fetch at the same commit would return.
// The folder Live/ is called by LocalRepository.results(of:), and apps use its public types.
internal import Synchronization

/// The results of one query for one reader, kept current on a separate actor, so that the reader's actor does no work for them.
///
/// Each change of a record is tested before it is buffered and before the reader is woken. For a small commit, the tests run on the store's
/// executor, until the tests of all readers together have taken ``ChangeHub/patience``. All other tests run on a queue beside the executor.
/// Filter closures of the app and searches for words run neither on the executor nor on the queue beside it.
///
/// A change that passes the first test is tested once more on the `LiveResults` actor and merged into the window, an ordered array of the
/// first results of the query. The query runs again only when removals have used up the window, or when the predicate throws for a changed
/// record. A query ordered by rank also runs again when a matching record has changed, because ranks depend on the texts of all records.
actor LiveResults<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  private weak let core: StoreCore?
  private let collection: Int
  private let coder: RecordCoder<Item>
  private let query: Query<Item>
  private var feed: ChangeFeed?
  private var following: Following?
  private var isOver = false
  /// Records of the last result that the reader has received.
  private var given: [RecordSlot]?
  /// Number of times that the actor has run the query, for tests.
  private(set) var runCount = 0

  private struct Following: Sendable {
    let matcher: RecordMatcher<Item>
    var window: LiveWindow<Item>
    /// True if the results are ordered by search rank, which depends on the texts of all records.
    let isRanked: Bool

    /// Filter for changes that can alter the results, or `nil` for a query whose filter may take long.
    var filter: (any ChangeFilter)? {
      // The closures in `filters` are code of the app, and a search for words reads whole texts. A query with such closures or a word
      // search has no filter, because the filter could delay a commit.
      guard matcher.query.filters.isEmpty, matcher.query.shape.words == nil else { return nil }
      return LiveFilter(matcher, window)
    }
  }

  init(_ core: StoreCore, collection: Int, coder: RecordCoder<Item>, query: Query<Item>) {
    self.core = core
    self.collection = collection
    self.coder = coder
    self.query = query
  }

  /// Returns the result of the query as soon as it differs from the last result that was returned.
  ///
  /// - Returns: The result, or `nil` when the store was closed or the task is cancelled.
  /// - Throws: as ``TypedQueryRun/ready(_:_:alsoUsing:of:in:_:)`` and ``TypedQueryRun/results(after:)``. After an error, every later call
  ///   returns `nil`.
  func next() async throws(RepositoryError) -> [Item]? {
    do throws(RepositoryError) {
      // The feed of changes is registered at the first call of `next()`, so that a sequence that no task reads costs the writers no time.
      if !isOver, feed == nil, !Task.isCancelled { try await begin() }
      while !isOver, let feed, !Task.isCancelled {
        if let items = different() { return items }
        guard let changes = await feed.nextAll(passing: following?.filter) else { break }
        if try !follow(changes) { try await fill() }
        // Until the next call of `next()`, the filter drops changes that cannot alter the results, so that a slow reader's buffer stays
        // small.
        feed.pass(only: following?.filter)
      }
      // A cancelled call of `next()` does not end the live results: the next call continues with the same feed of changes.
      if !Task.isCancelled { end() }
      return nil
    } catch {
      end()
      throw error
    }
  }

  /// The reader's buffer of changes, or `nil` before the first call of ``next()``, for tests.
  var currentFeed: ChangeFeed? { feed }

  private func begin() async throws(RepositoryError) {
    guard let core, !core.state.isClosed else { return end() }
    let feed = ChangeFeed()
    // The feed of changes is registered before the query runs, so that no commit between the registration and the run is lost. With
    // `isLater`, the feed receives a commit after the other observers, so that no commit waits for the tests of all live queries.
    core.hub.register(feed, for: collection, isLater: true)
    self.feed = feed
    try await fill()
    feed.pass(only: following?.filter)
  }

  private func end() {
    isOver = true
    (feed, following, given) = (nil, nil, nil)
  }

  /// Returns the results, or `nil` if their records, order and revisions are the same as those of the last results.
  private func different() -> [Item]? {
    guard let results = following?.window.results else { return nil }
    if let given, given.count == results.count, zip(given, results).allSatisfy({ $0.isSameRevision(as: $1.slot) }) { return nil }
    // The arguments of `map` are closures and not key paths, because a key path of a generic type is created again at each use.
    given = results.map { $0.slot }
    return results.map { $0.item }
  }

  // MARK: Following

  /// Merges changed records into the window, which holds the first results of the query.
  ///
  /// - Returns: `false` if the query must be run again.
  private func follow(_ changes: [RecordChange]) throws(RepositoryError) -> Bool {
    guard var following else { return false }
    self.following = nil  // so that the local copy is the window's only owner and changes the window in place
    defer { self.following = following }
    var matches: [(key: RecordKey, match: QueryCandidate<Item>?)] = []
    matches.reserveCapacity(changes.count)
    for change in changes {
      do throws(RepositoryError) {
        let match = try change.new.flatMap { slot throws(RepositoryError) in try following.matcher.liveMatch(slot) }
        if following.isRanked {
          // Search ranks depend on the words of all records, so one matching record that changes may move all other results.
          if match != nil || following.window.contains(change.key) { return false }
          if change.hasUnknownOld { return false }
          if let old = change.old, try following.matcher.liveMatch(old) != nil { return false }
        } else {
          matches.append((change.key, match))
        }
      } catch {
        return false  // a new run of the query either throws the error or ignores it
      }
    }
    return !following.window.apply(matches) || !following.window.isUsedUp
  }

  /// Runs the query at the newest commit, and begins to follow the changes after that commit.
  private func fill() async throws(RepositoryError) {
    // The original query is checked, because `wider` replaces its limit and offset, and a negative limit or offset must be refused.
    try query.shape.check()
    let isRanked = query.shape.words != nil && query.order.isEmpty
    var wider = query
    wider.shape.skipped = 0
    // Ranked results are fetched again after a change and never merged, so only the results that the reader sees are fetched.
    wider.shape.maximum = isRanked ? query.shape.needed : LiveWindow<Item>.capacity(limit: query.shape.maximum, offset: query.shape.skipped)
    guard let core else { return end() }
    let removals = core.indexBuilder.removalCount
    let run = try await TypedQueryRun.ready(wider, coder, of: collection, in: core) { [feed, collection] in
      // `publishedCollection` reads the state and its commit under one lock. The feed begins with the changes after `commit`, and `state`
      // is exactly the state at `commit`.
      feed?.restart()
      let (state, commit) = core.publishedCollection(collection)
      feed?.begin(after: commit)
      return state
    }
    // For a query without an index, the records are decoded on all cores, because `results()` would decode one record after the other.
    if case .scan = run.run.choice.access { try await run.run.records.decode(coder) }
    runCount += 1
    let window = LiveWindow(try run.results(), order: run.order, limit: query.shape.maximum, offset: query.shape.skipped)
    run.keepOrder(of: collection, after: removals, in: core)
    following = Following(
      matcher: RecordMatcher(query, coder: coder, definitions: run.run.indexes.definitions), window: window, isRanked: isRanked)
  }
}

extension RecordSlot {
  /// Returns true if both slots (records in memory) hold the same record at the same revision.
  func isSameRevision(as other: RecordSlot) -> Bool {
    // Object identity is compared first, because nearly all slots (records in memory) of two successive results are the same objects.
    self === other || (revision == other.revision && key == other.key)
  }
}

/// A filter for changes that can alter the results of a live query, given the present window of its results.
///
/// Every commit to a collection runs the filter of every live query of that collection. To be fast, the filter copies the parts of its
/// query once, when it is created, into types that need no look-up of generic metadata for each change.
final class LiveFilter<Item: Codable & Identifiable & Sendable>: ChangeFilter where Item.ID: Hashable & Codable & Sendable {
  private let matcher: RecordMatcher<Item>
  private let window: LiveWindow<Item>
  private let coder: RecordCoder<Item>
  private let isWindowEmpty: Bool
  private let isStrict: Bool
  /// All predicates of the query combined to one test, or `nil` if the query has none.
  private let predicate: PredicateTest<Item>?

  init(_ matcher: RecordMatcher<Item>, _ window: LiveWindow<Item>) {
    (self.matcher, self.window, coder) = (matcher, window, matcher.coder)
    (isWindowEmpty, isStrict) = (window.isEmpty, matcher.query.shape.isStrict)
    predicate = matcher.query.conjuncts.reduce(nil) { earlier, conjunct in
      let isMet = conjunct.evaluate
      guard let earlier else { return PredicateTest(isMet) }
      return PredicateTest { (item) throws(RepositoryError) -> Bool in
        if try !earlier.isMet(item) { return false }
        return try isMet(item)
      }
    }
  }

  func passes(_ change: RecordChange) -> Bool {
    // A record that was just inserted cannot be in the window. If the window still holds an earlier record of the same key, the buffer
    // holds the deletion of that record, and merges the insertion into the deletion.
    if !isWindowEmpty, change.old != nil, window.contains(change.key) { return true }
    guard let new = change.new else { return false }
    do throws(RepositoryError) {
      // Reading the value and testing the predicate is cheap and refuses most changes. A strict query must not refuse a change this way,
      // because a record that does not decode makes a strict query throw.
      if !isStrict {
        guard let value = coder.valueIfReadable(new) else { return false }
        if let predicate, try !predicate.isMet(value.item) { return false }
      }
      guard let match = try matcher.liveMatch(new) else { return false }
      return window.admits(match)
    } catch {
      // If the test throws, the query may throw too, and only a new run of the query can decide whether it does.
      return true
    }
  }
}

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
