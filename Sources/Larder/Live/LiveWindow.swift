/// The first results of a query in order, into which changes are merged record by record.
///
/// Invariant: the window holds all matches of the query up to ``bar``, or all matches if ``bar`` is `nil`. For a query with a limit, the
/// window holds up to four times as many matches as offset and limit together, and a few more. With the spare matches, removals seldom make
/// a new run of the query necessary.
struct LiveWindow<Item: Sendable>: Sendable {
  private let order: ResultOrder<Item>
  private let shown: Range<Int>
  private let capacity: Int?
  private var entries: [QueryCandidate<Item>] = []
  private var byKey: [RecordKey: QueryCandidate<Item>] = [:]
  /// The match up to which the window holds every match of the query, or `nil` if the window holds all matches.
  private var bar: QueryCandidate<Item>?

  /// Number of removals and insertions above which all of them are merged into the window in one pass.
  private static var bulk: Int { 32 }

  /// Creates a window for a query with a limit and an offset.
  ///
  /// `results` must be fetched with ``capacity(limit:offset:)`` as the limit, and without the offset.
  init(_ results: [QueryCandidate<Item>], order: ResultOrder<Item>, limit: Int?, offset: Int) {
    self.order = order
    capacity = Self.capacity(limit: limit, offset: offset)
    shown = offset..<(capacity == nil ? .max : offset + (limit ?? 0))
    entries = results
    byKey.reserveCapacity(results.count)
    for entry in results { byKey[entry.slot.key] = entry }
    // If the query returned fewer results than requested, the results are all matches of the query, so the window needs no `bar`.
    bar = capacity.map { results.count >= $0 } ?? false ? results.last : nil
  }

  /// Returns the number of results to fetch for a query with a limit and an offset, or `nil` for all results.
  static func capacity(limit: Int?, offset: Int) -> Int? {
    // For a limit or offset above `Int.max / 16`, computing the capacity could overflow. No collection has so many records, so all results
    // are fetched.
    guard let limit, limit < Int.max / 16, offset < Int.max / 16 else { return nil }
    // The capacity is twice the number of needed results and 16 more, so that removals seldom make the query run again.
    return limit == 0 ? 0 : (offset + limit) * 2 + 16
  }

  var isEmpty: Bool { byKey.isEmpty }
  func contains(_ key: RecordKey) -> Bool { byKey[key] != nil }

  /// Returns true if a match belongs into the window, because the match does not sort after ``bar``.
  func admits(_ match: QueryCandidate<Item>) -> Bool {
    capacity != 0 && !(bar.map { order.isBefore($0, match) } ?? false)
  }

  /// True if the window may hold fewer matches than the reader must see, while the query may have more matches after ``bar``.
  var isUsedUp: Bool { bar != nil && entries.count < shown.upperBound }

  /// Results that the reader sees: the entries after the offset and up to the limit.
  var results: ArraySlice<QueryCandidate<Item>> {
    // Both bounds of the range are clamped, because the window may have fewer entries than the query's offset or limit.
    entries[min(shown.lowerBound, entries.count)..<min(shown.upperBound, entries.count)]
  }

  /// Moves, inserts or removes changed records, given each record's key and its match, or `nil` for a record that does not match.
  ///
  /// Cost: one dictionary look-up for a record that does not match and did not match before.
  ///
  /// - Returns: True if the window has changed.
  mutating func apply(_ changes: [(key: RecordKey, match: QueryCandidate<Item>?)]) -> Bool {
    guard capacity != 0 else { return false }
    var removed: [QueryCandidate<Item>] = []
    var inserted: [QueryCandidate<Item>] = []
    for (key, match) in changes {
      if let old = byKey.removeValue(forKey: key) { removed.append(old) }
      guard let match else { continue }
      guard admits(match) else { continue }
      byKey[key] = match
      inserted.append(match)
    }
    if removed.isEmpty, inserted.isEmpty { return false }
    // Each single removal or insertion moves all entries behind its index, so more than `bulk` changes are merged in one pass.
    if removed.count + inserted.count <= Self.bulk {
      for entry in removed { remove(entry) }
      for entry in inserted { entries.insert(entry, at: position(of: entry)) }
    } else {
      merge(removed, inserted)
    }
    trim()
    return true
  }

  private mutating func remove(_ entry: QueryCandidate<Item>) {
    let position = position(of: entry)
    if position < entries.count, entries[position].slot === entry.slot {
      entries.remove(at: position)
    } else {
      entries.removeAll { $0.slot === entry.slot }  // binary search can miss the entry if the app's `<` is not a strict order
    }
  }

  /// Returns the index of the first entry that does not sort before the given entry.
  private func position(of entry: QueryCandidate<Item>) -> Int {
    (0..<entries.count).partitionPoint { !order.isBefore(entries[$0], entry) }
  }

  private mutating func merge(_ removed: [QueryCandidate<Item>], _ inserted: [QueryCandidate<Item>]) {
    let gone = Set(removed.map { ObjectIdentifier($0.slot) })
    let added = inserted.sorted(by: order.isBefore)
    var merged: [QueryCandidate<Item>] = []
    merged.reserveCapacity(entries.count + added.count)
    var next = 0
    for entry in entries where !gone.contains(ObjectIdentifier(entry.slot)) {
      while next < added.count, order.isBefore(added[next], entry) {
        merged.append(added[next])
        next += 1
      }
      merged.append(entry)
    }
    entries = merged + added[next...]
  }

  private mutating func trim() {
    // The window is trimmed to its capacity only when it exceeds twice its capacity, so that not every insertion trims it.
    guard let capacity, entries.count > capacity * 2 else { return }
    for entry in entries[capacity...] { byKey[entry.slot.key] = nil }
    entries.removeLast(entries.count - capacity)
    bar = entries.last
  }
}
