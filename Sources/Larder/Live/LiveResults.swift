// Live/ holds live results: a query is run once, and then each change is merged into its results.
// Invariant: a reader receives the result that a fetch at that commit would return. Called by LocalRepository.results(of:) and LiveQuery.
internal import Synchronization

/// The results of one query for one reader, kept current on an actor of their own, so that the reader's actor does no work for them.
///
/// Each change is tested before it is buffered and before the reader is woken. The tests run on the store's executor while they take no
/// longer than ``ChangeHub/patience`` for all readers together, and then on a queue beside it. Closures of the app and words are never
/// tested there.
///
/// A change that passes is tested once more here and put into the ordered window. The query runs again only when the window is used up, and
/// when the predicate fails for a changed record. A query in the order of its rank also runs again when a record that matches has changed,
/// because ranks depend on all texts.
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
  /// Number of times that the query was run, for tests.
  private(set) var runCount = 0

  private struct Following: Sendable {
    let matcher: RecordMatcher<Item>
    var window: LiveWindow<Item>
    /// True if the order is by rank, which does not follow from the changed record alone.
    let isRanked: Bool

    /// Test of whether a change matters to the window, or `nil` for a query whose test may take long.
    var filter: (any ChangeFilter)? {
      // A filter runs code of the app, and words are looked for in whole texts. Neither may delay a commit.
      guard matcher.query.filters.isEmpty, matcher.query.shape.words == nil else { return nil }
      return LiveFilter(matcher, window)
    }
  }

  init(_ core: StoreCore, _ collection: Int, _ coder: RecordCoder<Item>, _ query: Query<Item>) {
    self.core = core
    self.collection = collection
    self.coder = coder
    self.query = query
  }

  /// Returns the result as soon as it differs from the last one returned, or `nil` at the end and when the task is cancelled.
  /// - Throws: as ``TypedQueryRun/ready(_:_:alsoUsing:of:in:_:)`` and ``TypedQueryRun/results(after:)``. After an error, the results are at
  ///   their end.
  func next() async throws(RepositoryError) -> [Item]? {
    do throws(RepositoryError) {
      // Only at the first call, so that a sequence that nobody reads costs the writers nothing.
      if !isOver, feed == nil, !Task.isCancelled { try await begin() }
      while !isOver, let feed, !Task.isCancelled {
        if let items = different() { return items }
        guard let changes = await feed.nextAll(passing: following?.filter) else { break }
        if try !follow(changes) { try await fill() }
        // Until the next call, changes that do not matter are left out, and so a slow reader's buffer stays small.
        feed.pass(only: following?.filter)
      }
      // A cancelled call ends nothing: the next one goes on with the same feed.
      if !Task.isCancelled { end() }
      return nil
    } catch {
      end()
      throw error
    }
  }

  /// Buffer of changes, after the first call of ``next()``, for tests.
  var currentFeed: ChangeFeed? { feed }

  private func begin() async throws(RepositoryError) {
    guard let core, !core.state.isClosed else { return end() }
    let feed = ChangeFeed()
    // Before the query runs, so that no commit is lost in between. Later than other observers, so that no commit waits for all live
    // queries.
    core.hub.register(feed, for: collection, isLater: true)
    self.feed = feed
    try await fill()
    feed.pass(only: following?.filter)
  }

  private func end() {
    isOver = true
    (feed, following, given) = (nil, nil, nil)
  }

  /// Returns the result if it has other records than the last one, another order, or another revision of a record.
  private func different() -> [Item]? {
    guard let results = following?.window.results else { return nil }
    if let given, given.count == results.count, zip(given, results).allSatisfy({ $0.isSameRevision(as: $1.slot) }) { return nil }
    // Closures, because a key path of a generic type is created again at each use.
    given = results.map { $0.slot }
    return results.map { $0.item }
  }

  // MARK: Following

  /// Merges changed records into the window, which holds the first results of the query.
  /// - Returns: `false` if the query must be run again.
  private func follow(_ changes: [RecordChange]) throws(RepositoryError) -> Bool {
    guard var following else { return false }
    self.following = nil  // so that the window has one owner, and changes in place
    defer { self.following = following }
    var matches: [(key: RecordKey, match: QueryCandidate<Item>?)] = []
    matches.reserveCapacity(changes.count)
    for change in changes {
      do throws(RepositoryError) {
        let match = try change.new.flatMap { slot throws(RepositoryError) in try following.matcher.liveMatch(slot) }
        if following.isRanked {
          // Ranks depend on the words of all records: one match that changes may move all others.
          if match != nil || following.window.contains(change.key) { return false }
          if let old = change.old, try following.matcher.liveMatch(old) != nil { return false }
        } else {
          matches.append((change.key, match))
        }
      } catch {
        return false  // the run decides whether the failure matters
      }
    }
    return !following.window.apply(matches) || !following.window.isUsedUp
  }

  /// Runs the query at the newest commit, and begins to follow it from there.
  private func fill() async throws(RepositoryError) {
    // Checked here, because the wider query below has lost a negative limit or offset.
    try query.shape.check()
    let isRanked = query.shape.words != nil && query.order.isEmpty
    var wider = query
    wider.shape.skipped = 0
    // Ranked results are not kept current but run again, so only the shown results are fetched.
    wider.shape.maximum = isRanked ? query.shape.needed : LiveWindow<Item>.capacity(limit: query.shape.maximum, offset: query.shape.skipped)
    guard let core else { return end() }
    let run = try await TypedQueryRun.ready(wider, coder, of: collection, in: core) { [feed, collection] in
      // Under one lock, so that the feed begins exactly after the state that the query runs on.
      feed?.restart()
      let (state, commit) = core.publishedCollection(collection)
      feed?.begin(after: commit)
      return state
    }
    // Decodes on all cores. The run below would decode one record after the other.
    if case .scan = run.run.choice.access { await run.run.records.decode(coder) }
    runCount += 1
    let window = LiveWindow(try run.results(), order: run.order, limit: query.shape.maximum, offset: query.shape.skipped)
    following = Following(
      matcher: RecordMatcher(query, coder, run.run.indexes.definitions), window: window, isRanked: isRanked)
  }
}

extension RecordSlot {
  /// Returns true if both slots hold one record at the same revision.
  func isSameRevision(as other: RecordSlot) -> Bool {
    // Slots are compared first, because nearly all slots of two results are the same objects.
    self === other || (revision == other.revision && key == other.key)
  }
}

/// A test of whether a change matters to a live query, for one state of its window.
///
/// The test of every live query of a collection runs for every commit to it. Its parts are therefore taken out of the query when the filter
/// is created, in types that need no look-up of generic metadata for each change.
final class LiveFilter<Item: Codable & Identifiable & Sendable>: ChangeFilter where Item.ID: Hashable & Codable & Sendable {
  private let matcher: RecordMatcher<Item>
  private let window: LiveWindow<Item>
  private let coder: RecordCoder<Item>
  private let isWindowEmpty: Bool
  private let isStrict: Bool
  /// All predicates of the query as one test, or `nil` if it has none.
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
    // An inserted record cannot be in the window. If it had been deleted after the window was filled, that deletion would be buffered.
    if !isWindowEmpty, change.old != nil, window.contains(change.key) { return true }
    guard let new = change.new else { return false }
    do throws(RepositoryError) {
      // Most changes end here, before a candidate is made. A strict query also needs records that do not decode, which make it throw.
      if !isStrict {
        guard let value = coder.valueIfReadable(new) else { return false }
        if let predicate, try !predicate.isMet(value.item) { return false }
      }
      guard let match = try matcher.liveMatch(new) else { return false }
      return window.admits(match)
    } catch {
      // The failure may make the query throw, which only a new run can find out.
      return true
    }
  }
}
