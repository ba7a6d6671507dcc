// Live/ holds live results: a query that is run once, and then kept up change by change.
// Invariant: what a reader is given is what a fetch at that commit would give. Called by LocalRepository.results(of:) and LiveQuery.
internal import Synchronization

/// The results of one query for one reader, kept up on an actor of their own, so that the reader's actor does not pay for it.
///
/// Each change is tested before the reader is woken or keeps it: on the store's executor while that takes no longer than
/// ``ChangeHub/patience`` for all readers together, then on a queue beside it. Closures of the app and words are never tested there.
///
/// A change is tested against the query and put into the ordered window. The query is run again only when the window is used up, when the
/// predicate fails for a changed record, or, for a query in the order of its rank, when a record that matches has changed: ranks depend on
/// all texts.
actor LiveResults<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  private weak let core: StoreCore?
  private let collection: Int
  private let coder: RecordCoder<Item>
  private let query: Query<Item>
  private var feed: ChangeFeed?
  private var following: Following?
  private var isOver = false
  /// The records of the result that the reader was given last.
  private var given: [RecordSlot]?
  /// The number of times that the query was run, for tests.
  private(set) var runCount = 0

  private struct Following: Sendable {
    let matcher: RecordMatcher<Item>
    var window: LiveWindow<Item>
    /// Whether the order is by rank, which the changed record alone does not tell.
    let isRanked: Bool

    /// The test of whether a change matters to the window; `nil` for a query whose test may take long.
    var filter: (any ChangeFilter)? {
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

  /// Returns the result as soon as it differs from what was given before; `nil` at the end, and when the task is cancelled.
  /// - Throws: as ``TypedQueryRun/ready(_:_:alsoUsing:of:in:_:)`` and ``TypedQueryRun/results(after:)``; then the results are over.
  func next() async throws(RepositoryError) -> [Item]? {
    do throws(RepositoryError) {
      if !isOver, feed == nil, !Task.isCancelled { try await begin() }
      while !isOver, let feed, !Task.isCancelled {
        if let items = different() { return items }
        guard let changes = await feed.nextAll(passing: following?.filter) else { break }
        if try !follow(changes) { try await fill() }
        feed.pass(only: following?.filter)
      }
      if !Task.isCancelled { end() }
      return nil
    } catch {
      end()
      throw error
    }
  }

  /// The feed, once there is one, for tests.
  var currentFeed: ChangeFeed? { feed }

  private func begin() async throws(RepositoryError) {
    guard let core, !core.state.isClosed else { return end() }
    let feed = ChangeFeed()
    core.hub.register(feed, for: collection, isLater: true)
    self.feed = feed
    try await fill()
    feed.pass(only: following?.filter)
  }

  private func end() {
    isOver = true
    (feed, following, given) = (nil, nil, nil)
  }

  /// Returns the result when it is another one than before: other records, another order, or another revision of one.
  private func different() -> [Item]? {
    guard let results = following?.window.results else { return nil }
    if let given, given.count == results.count, zip(given, results).allSatisfy({ $0.isSameRevision(as: $1.slot) }) { return nil }
    // Closures, since a key path of a generic type is made anew at each use.
    given = results.map { $0.slot }
    return results.map { $0.item }
  }

  // MARK: Following

  /// Follows changes.
  /// - Returns: `false` when the query must be run again.
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
          if match != nil || following.window.contains(change.key) { return false }
          if let old = change.old, try following.matcher.liveMatch(old) != nil { return false }
        } else {
          matches.append((change.key, match))
        }
      } catch {
        return false  // the run will say whether it matters
      }
    }
    return !following.window.apply(matches) || !following.window.isUsedUp
  }

  /// Runs the query at the newest commit.
  private func fill() async throws(RepositoryError) {
    // Here and not by the run alone: of a wider query a negative limit or offset cannot be seen.
    try query.shape.check()
    let isRanked = query.shape.words != nil && query.order.isEmpty
    var wider = query
    wider.shape.skipped = 0
    // Of ranked results no more is needed than is shown: they are not kept up, but run again.
    wider.shape.maximum = isRanked ? query.shape.needed : LiveWindow<Item>.capacity(limit: query.shape.maximum, offset: query.shape.skipped)
    guard let core else { return end() }
    let run = try await TypedQueryRun.ready(wider, coder, of: collection, in: core) { [feed, collection] in
      // The feed begins behind the very state that the query is run on.
      feed?.restart()
      let (state, commit) = core.publishedCollection(collection)
      feed?.begin(after: commit)
      return state
    }
    if case .scan = run.run.choice.access { await run.run.records.decode(coder) }
    runCount += 1
    let window = LiveWindow(try run.results(), order: run.order, limit: query.shape.maximum, offset: query.shape.skipped)
    following = Following(
      matcher: RecordMatcher(query, coder, run.run.indexes.definitions), window: window, isRanked: isRanked)
  }
}

extension RecordSlot {
  /// Whether both are one record as one commit wrote it.
  func isSameRevision(as other: RecordSlot) -> Bool {
    self === other || (revision == other.revision && key == other.key)
  }
}

/// The test of whether a change matters to a live query, for one state of its window.
///
/// Every live query is asked about every commit, so that little may be done before most changes are left out: what the test needs is taken
/// out of the query when the filter is made, and is of types that need not be looked up.
final class LiveFilter<Item: Codable & Identifiable & Sendable>: ChangeFilter where Item.ID: Hashable & Codable & Sendable {
  private let matcher: RecordMatcher<Item>
  private let window: LiveWindow<Item>
  private let coder: RecordCoder<Item>
  private let isWindowEmpty: Bool
  private let isStrict: Bool
  /// All parts of the predicate; `nil` where there is none.
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
    // What is new since the window was filled cannot be in it: a deletion before it would be buffered.
    if !isWindowEmpty, change.old != nil, window.contains(change.key) { return true }
    guard let new = change.new else { return false }
    do throws(RepositoryError) {
      // Most changes end here, before anything is made of them. A strict query has more to say of what does not decode.
      if !isStrict {
        guard let value = coder.valueIfReadable(new) else { return false }
        if let predicate, try !predicate.isMet(value.item) { return false }
      }
      guard let match = try matcher.liveMatch(new) else { return false }
      return window.admits(match)
    } catch {
      return true
    }
  }
}
