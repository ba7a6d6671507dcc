/// The first results of a query in order, updated record by record.
///
/// Invariant: the window holds all matches up to ``bar``, and all matches of the query if there is no bar. For a query with a limit it
/// holds up to four times as many matches as offset and limit together, and a few more, so that removals seldom use it up.
struct LiveWindow<Item: Sendable>: Sendable {
  private let order: ResultOrder<Item>
  private let shown: Range<Int>
  private let capacity: Int?
  private var entries: [QueryCandidate<Item>] = []
  private var byKey: [RecordKey: QueryCandidate<Item>] = [:]
  /// Match up to which the window is complete, or `nil` if it holds all matches.
  private var bar: QueryCandidate<Item>?

  /// Number of changes above which they are merged into the window in one pass.
  private static var bulk: Int { 32 }

  /// Creates a window for a query with a limit and an offset.
  ///
  /// `results` must be fetched with the capacity as the limit, and without the offset.
  init(_ results: [QueryCandidate<Item>], order: ResultOrder<Item>, limit: Int?, offset: Int) {
    self.order = order
    capacity = Self.capacity(limit: limit, offset: offset)
    shown = offset..<(capacity == nil ? .max : offset + (limit ?? 0))
    entries = results
    byKey.reserveCapacity(results.count)
    for entry in results { byKey[entry.slot.key] = entry }
    // Fewer results than requested are all that the query has, so the window needs no bar.
    bar = capacity.map { results.count >= $0 } ?? false ? results.last : nil
  }

  /// Returns the number of results to fetch for a query with a limit and an offset, or `nil` for all results.
  static func capacity(limit: Int?, offset: Int) -> Int? {
    // The sum below would overflow with larger numbers, which no collection reaches.
    guard let limit, limit < Int.max / 16, offset < Int.max / 16 else { return nil }
    // Twice the shown results and 16 more, so that removals seldom make the query run again.
    return limit == 0 ? 0 : (offset + limit) * 2 + 16
  }

  var isEmpty: Bool { byKey.isEmpty }
  func contains(_ key: RecordKey) -> Bool { byKey[key] != nil }

  /// Returns true if the window has room for a match that it does not hold yet.
  func admits(_ match: QueryCandidate<Item>) -> Bool {
    capacity != 0 && !(bar.map { order.isBefore($0, match) } ?? false)
  }

  /// True if the window may hold fewer matches than are shown, while the query has more of them behind the bar.
  var isUsedUp: Bool { bar != nil && entries.count < shown.upperBound }

  /// Results that the reader sees, after the offset and up to the limit.
  var results: ArraySlice<QueryCandidate<Item>> {
    // Both bounds are limited, because a query may have fewer results than its offset.
    entries[min(shown.lowerBound, entries.count)..<min(shown.upperBound, entries.count)]
  }

  /// Moves, inserts or removes changed records, each of which has its key and its match, or `nil` if it no longer meets the query.
  ///
  /// Cost: one look-up for a record that does not match and did not match before.
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
    // Each removal and insertion moves the entries behind it, so many of them are merged in one pass.
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
      entries.removeAll { $0.slot === entry.slot }  // binary search misses entries if the app's `<` is no order
    }
  }

  /// Returns the position of the first entry that does not come before the given one.
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
    // Only at twice the capacity, so that a series of insertions is not trimmed one by one.
    guard let capacity, entries.count > capacity * 2 else { return }
    for entry in entries[capacity...] { byKey[entry.slot.key] = nil }
    entries.removeLast(entries.count - capacity)
    bar = entries.last
  }
}
