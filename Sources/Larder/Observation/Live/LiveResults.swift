internal import Synchronization

/// Follows the results of one query for one reader, on an actor of its own, so that the reader's actor does not pay for it.
///
/// While the reader waits, the store's executor tests each change for it, which costs less than to wake it; closures of the caller's and
/// words are never tested there.
///
/// A change is tested against the query and put into the ordered window. The query is run again only when the window is used up, when the
/// predicate fails for a changed record, or, for a query in the order of its rank, when a record that matches has changed: ranks depend on all
/// texts.
actor LiveResults<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  private weak let queue: StoreCore?
  private let collection: Int
  private let query: Query<Item>
  private var feed: ChangeFeed?
  private var following: Following?
  private var isOver = false
  /// What the reader was given last.
  private var given: [RecordSlot]?
  /// How often the query was run: for tests.
  private(set) var runCount = 0

  private struct Following: Sendable {
    /// For testing records; it holds none, so that old ones are not kept alive.
    let tester: QueryRun<Item>
    var window: LiveWindow<Item>
    /// Whether the order is by rank, which the changed record alone does not tell.
    let isRanked: Bool

    /// Whether a change matters to the window; `nil` for a query whose test may take long.
    var filter: ChangeFeed.Filter? {
      guard tester.query.filters.isEmpty, tester.query.words == nil else { return nil }
      let (tester, window) = (tester, window)
      return { change in
        if window.contains(change.key) { return true }
        guard let new = change.new else { return false }
        do throws(RepositoryError) { return try tester.liveMatch(new).map(window.takes) ?? false } catch { return true }
      }
    }
  }

  init(_ queue: StoreCore, _ collection: Int, _ query: Query<Item>) {
    self.queue = queue
    self.collection = collection
    self.query = query
  }

  /// The result, if it differs from what was given before, as soon as it does; `nil` at the end, and when the task is cancelled.
  func next() async throws(RepositoryError) -> [Item]? {
    do throws(RepositoryError) {
      if !isOver, feed == nil, !Task.isCancelled { try await begin() }
      while !isOver, let feed, !Task.isCancelled {
        if let items = different() { return items }
        guard let changes = await feed.nextAll(passing: following?.filter) else { break }
        if try !follow(changes) { try await fill() }
      }
      if !Task.isCancelled { end() }
      return nil
    } catch {
      end()
      throw error
    }
  }

  /// The feed, once there is one: for tests.
  var currentFeed: ChangeFeed? { feed }

  private func begin() async throws(RepositoryError) {
    guard let queue, !queue.state.isClosed else { return end() }
    let feed = ChangeFeed()
    queue.hub.register(feed, for: collection)
    self.feed = feed
    try await fill()
  }

  private func end() {
    isOver = true
    (feed, following, given) = (nil, nil, nil)
  }

  /// The result when it is another one than before: other records, another order, or another revision of one.
  private func different() -> [Item]? {
    guard let results = following?.window.results else { return nil }
    if let given, given.count == results.count, zip(given, results).allSatisfy({ $0.isSameRevision(as: $1.slot) }) { return nil }
    given = results.map(\.slot)
    return results.map(\.item)
  }

  // MARK: Following

  /// Follows changes; `false` when the query must be run again.
  private func follow(_ changes: [RecordChange]) throws(RepositoryError) -> Bool {
    guard var following else { return false }
    self.following = nil  // so that the window has one owner, and changes in place
    defer { self.following = following }
    var matches: [(key: RecordKey, match: QueryCandidate<Item>?)] = []
    matches.reserveCapacity(changes.count)
    for change in changes {
      do throws(RepositoryError) {
        let match = try change.new.flatMap { slot throws(RepositoryError) in try following.tester.liveMatch(slot) }
        if following.isRanked {
          if match != nil || following.window.contains(change.key) { return false }
          if let old = change.old, try following.tester.liveMatch(old) != nil { return false }
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
    let prepared = try PreparedQuery(query)
    let isRanked = prepared.words != nil && prepared.order.isEmpty
    var wider = query
    wider.shape.skipped = 0
    // Of ranked results no more is needed than is shown: they are not kept up, but run again.
    wider.shape.maximum = isRanked ? prepared.needed : LiveWindow<Item>.capacity(limit: prepared.maximum, offset: prepared.skipped)
    guard let run = try await run(try PreparedQuery(wider)) else { return end() }
    runCount += 1
    let window = LiveWindow(try run.results(), order: run.order, limit: prepared.maximum, offset: prepared.skipped)
    let tester = try QueryRun(prepared, records: RecordMap(), indexes: IndexSet(run.indexes.declarations, run.indexes.coder))
    following = Following(tester: tester, window: window, isRanked: isRanked)
  }

  /// The query, ready to run on one committed state behind which the feed goes on, with its indexes built; `nil` when the store is gone.
  private func run(_ prepared: PreparedQuery<Item>) async throws(RepositoryError) -> QueryRun<Item>? {
    while let queue {
      feed?.restart()
      let (state, commit) = queue.published.withLock { state in (state.collections[collection], Revision(state.commit)) }
      feed?.begin(after: commit)
      guard let indexes = state.indexes as? IndexSet<Item> else {
        throw RepositoryError(.unsupported, "the collection has no indexes of this type")
      }
      let missing = QueryPlanner.usable(prepared.shape, indexes.shapes).filter { !indexes.isBuilt($0) }
      if missing.isEmpty {
        if prepared.shape.isStrict { _ = await ParallelDecoding.undecodableCount(state.records, indexes.coder) }
        let run = try QueryRun(prepared, records: state.records, indexes: indexes)
        if case .scan = run.choice.access { await ParallelDecoding.touch(run.records, indexes.coder) }
        return run
      }
      for index in missing { await queue.buildIndex(index, of: collection, Item.self) }
    }
    return nil
  }
}

extension RecordSlot {
  /// Whether both are one record as one commit wrote it.
  func isSameRevision(as other: RecordSlot) -> Bool {
    self === other || (revision == other.revision && key == other.key)
  }
}

extension QueryRun {
  /// The record as a match of the whole query, whatever an index could answer; `nil` when it is none.
  ///
  /// - Throws: `.unsupported` when a predicate cannot be evaluated; for a strict query, why the record does not decode.
  func liveMatch(_ slot: RecordSlot) throws(RepositoryError) -> QueryCandidate<Item>? {
    if query.shape.isStrict, let failure = slot.failure(indexes.coder) { throw failure }
    if query.isImpossible { return nil }
    guard let value = indexes.value(slot) else { return nil }
    let item = value.item
    for conjunct in query.conjuncts where try !conjunct.evaluate(item) { return nil }
    var candidate = QueryCandidate(slot: slot, value: value)
    if query.shape.isPlaced {
      guard try place(&candidate) else { return nil }
    }
    if let words = query.words, !hasWords(words, item) { return nil }
    for filter in query.filters where !filter(item) { return nil }
    return candidate
  }

  /// Whether a record has the words.
  private func hasWords(_ words: TextQuery, _ item: Item) -> Bool {
    for declaration in indexes.declarations {
      if case .fullText(let texts) = declaration.kind { return words.matches(texts(item)) }
    }
    return false
  }
}
