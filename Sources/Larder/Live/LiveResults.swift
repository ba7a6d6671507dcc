// Live/ holds live results: a query is run once, and then each change of a record is merged into its results.
// Invariant: each result that a reader receives is the result that a fetch at the same commit would return. Called by
// LocalRepository.results(of:) and LiveQuery.
internal import Synchronization

/// The results of one query for one reader, kept current on an actor of their own, so that the reader's actor does no work for them.
///
/// Each change is tested before it is buffered and before the reader is woken. The tests run on the store's executor while they take no
/// longer than ``ChangeHub/patience`` for all readers together. The remaining tests run on a queue beside the executor. Closures of the app
/// and searches for words run neither on the executor nor on that queue.
///
/// A change that passes the first test is tested once more on this actor and put into the ordered window, which holds the first results of
/// the query. The query runs again only when removals have used up the window, or when the predicate throws for a changed record. A query
/// ordered by rank also runs again when a matching record has changed, because ranks depend on the texts of all records.
actor LiveResults<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  private weak let core: StoreCore?
  private let collection: Int
  private let coder: RecordCoder<Item>
  private let query: Query<Item>
  private var feed: ChangeFeed?
  private var following: Following?
  private var isOver = false
  /// Records of the result that the reader has received last.
  private var given: [RecordSlot]?
  /// Number of times that this object has run the query, for tests.
  private(set) var runCount = 0

  private struct Following: Sendable {
    let matcher: RecordMatcher<Item>
    var window: LiveWindow<Item>
    /// True if the results are ordered by rank, which a changed record alone does not determine.
    let isRanked: Bool

    /// Test of whether a change matters to the window, or `nil` for a query whose test may take long.
    var filter: (any ChangeFilter)? {
      // The closures in `filters` are code of the app, and a search for words reads whole texts. No filter runs these closures or searches
      // for words, because either could delay a commit.
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

  /// Returns the result as soon as it differs from the last result that was returned.
  ///
  /// - Returns: The result, or `nil` when the store was closed or the task is cancelled.
  /// - Throws: as ``TypedQueryRun/ready(_:_:alsoUsing:of:in:_:)`` and ``TypedQueryRun/results(after:)``. After an error, every later call
  ///   returns `nil`.
  func next() async throws(RepositoryError) -> [Item]? {
    do throws(RepositoryError) {
      // The feed is registered at the first call only, so that a sequence that no task reads costs the writers no time.
      if !isOver, feed == nil, !Task.isCancelled { try await begin() }
      while !isOver, let feed, !Task.isCancelled {
        if let items = different() { return items }
        guard let changes = await feed.nextAll(passing: following?.filter) else { break }
        if try !follow(changes) { try await fill() }
        // Until the next call of `next()`, changes that do not matter are not buffered, so that a slow reader's buffer stays small.
        feed.pass(only: following?.filter)
      }
      // A cancelled call does not end the live results: the next call of `next()` continues with the same feed.
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
    // The feed is registered before the query runs, so that no commit between the registration and the run is lost. With `isLater`, the
    // feed receives a commit after the other observers, so that no commit waits for the tests of all live queries.
    core.hub.register(feed, for: collection, isLater: true)
    self.feed = feed
    try await fill()
    feed.pass(only: following?.filter)
  }

  private func end() {
    isOver = true
    (feed, following, given) = (nil, nil, nil)
  }

  /// Returns the results if their records, their order or a record's revision differ from the last results, otherwise `nil`.
  private func different() -> [Item]? {
    guard let results = following?.window.results else { return nil }
    if let given, given.count == results.count, zip(given, results).allSatisfy({ $0.isSameRevision(as: $1.slot) }) { return nil }
    // The mappings are closures and not key paths, because a key path of a generic type is created again at each use.
    given = results.map { $0.slot }
    return results.map { $0.item }
  }

  // MARK: Following

  /// Merges changed records into the window, which holds the first results of the query.
  ///
  /// - Returns: `false` if the query must be run again.
  private func follow(_ changes: [RecordChange]) throws(RepositoryError) -> Bool {
    guard var following else { return false }
    self.following = nil  // so that the local copy is the only owner of the window and changes it in place
    defer { self.following = following }
    var matches: [(key: RecordKey, match: QueryCandidate<Item>?)] = []
    matches.reserveCapacity(changes.count)
    for change in changes {
      do throws(RepositoryError) {
        let match = try change.new.flatMap { slot throws(RepositoryError) in try following.matcher.liveMatch(slot) }
        if following.isRanked {
          // Ranks depend on the words of all records: one matching record that changes may move all other results.
          if match != nil || following.window.contains(change.key) { return false }
          if let old = change.old, try following.matcher.liveMatch(old) != nil { return false }
        } else {
          matches.append((change.key, match))
        }
      } catch {
        return false  // a new run of the query decides whether the failure matters
      }
    }
    return !following.window.apply(matches) || !following.window.isUsedUp
  }

  /// Runs the query at the newest commit, and begins to follow the changes after that commit.
  private func fill() async throws(RepositoryError) {
    // The check is made on the original query, because the wider query below replaces a negative limit or offset, which must be refused.
    try query.shape.check()
    let isRanked = query.shape.words != nil && query.order.isEmpty
    var wider = query
    wider.shape.skipped = 0
    // Ranked results are never merged with changes but fetched again, so no more results than the shown ones are fetched.
    wider.shape.maximum = isRanked ? query.shape.needed : LiveWindow<Item>.capacity(limit: query.shape.maximum, offset: query.shape.skipped)
    guard let core else { return end() }
    let run = try await TypedQueryRun.ready(wider, coder, of: collection, in: core) { [feed, collection] in
      // `publishedCollection` reads the state and its commit under one lock. The feed begins after this commit, which is exactly the state
      // that the query runs on.
      feed?.restart()
      let (state, commit) = core.publishedCollection(collection)
      feed?.begin(after: commit)
      return state
    }
    // Decodes the records on all cores. The scan in `results()` would decode one record after the other.
    if case .scan = run.run.choice.access { await run.run.records.decode(coder) }
    runCount += 1
    let window = LiveWindow(try run.results(), order: run.order, limit: query.shape.maximum, offset: query.shape.skipped)
    following = Following(
      matcher: RecordMatcher(query, coder: coder, definitions: run.run.indexes.definitions), window: window, isRanked: isRanked)
  }
}

extension RecordSlot {
  /// Returns true if both slots (records in memory) hold the same record at the same revision.
  func isSameRevision(as other: RecordSlot) -> Bool {
    // The identity of the slots is compared first, because nearly all slots of two successive results are the same objects.
    self === other || (revision == other.revision && key == other.key)
  }
}

/// A test of whether a change matters to a live query, for one state of its window.
///
/// Every commit to a collection runs the test of every live query of that collection. To make the test fast, the filter reads the parts of
/// its query once, when it is created, into types that need no look-up of generic metadata for each change.
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
    // An inserted record cannot be in the window. If the window still holds an earlier record of this key, the buffer holds that record's
    // deletion and merges the insertion into it.
    if !isWindowEmpty, change.old != nil, window.contains(change.key) { return true }
    guard let new = change.new else { return false }
    do throws(RepositoryError) {
      // Most changes are refused by this cheap test. A strict query must not use this cheap test: a record that does not decode makes a
      // strict query throw.
      if !isStrict {
        guard let value = coder.valueIfReadable(new) else { return false }
        if let predicate, try !predicate.isMet(value.item) { return false }
      }
      guard let match = try matcher.liveMatch(new) else { return false }
      return window.admits(match)
    } catch {
      // An error of the test may make the query throw, and only a new run of the query can decide that.
      return true
    }
  }
}
