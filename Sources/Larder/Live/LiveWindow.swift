/// The first results of a query in order, kept up to date record by record.
///
/// Invariant: it holds all matches up to ``bar``, and all matches there are when there is no bar. For a query with a limit it holds
/// up to four times as many as offset and limit together, and a few more, so that removals seldom use it up.
struct LiveWindow<Item: Sendable>: Sendable {
  private let order: ResultOrder<Item>
  private let shown: Range<Int>
  private let capacity: Int?
  private var entries: [QueryCandidate<Item>] = []
  private var byKey: [RecordKey: QueryCandidate<Item>] = [:]
  /// The last match up to which the window is complete.
  private var bar: QueryCandidate<Item>?

  /// The number of changes above which they are sorted in together.
  private static var bulk: Int { 32 }

  /// Makes a window of the results of a query that shows so many behind so many: those with the capacity as the limit, and no offset.
  init(_ results: [QueryCandidate<Item>], order: ResultOrder<Item>, limit: Int?, offset: Int) {
    self.order = order
    capacity = Self.capacity(limit: limit, offset: offset)
    shown = offset..<(capacity == nil ? .max : offset + (limit ?? 0))
    entries = results
    byKey.reserveCapacity(results.count)
    for entry in results { byKey[entry.slot.key] = entry }
    bar = capacity.map { results.count >= $0 } ?? false ? results.last : nil
  }

  /// Returns how many results to ask for, to keep up a query that shows so many behind so many; `nil` for all.
  static func capacity(limit: Int?, offset: Int) -> Int? {
    guard let limit, limit < Int.max / 16, offset < Int.max / 16 else { return nil }
    return limit == 0 ? 0 : (offset + limit) * 2 + 16
  }

  var isEmpty: Bool { byKey.isEmpty }
  func contains(_ key: RecordKey) -> Bool { byKey[key] != nil }

  /// Whether a match that is not in the window would get into it.
  func admits(_ match: QueryCandidate<Item>) -> Bool {
    capacity != 0 && !(bar.map { order.isBefore($0, match) } ?? false)
  }

  /// Whether the window may hold too few: matches behind the bar would have to be shown.
  var isUsedUp: Bool { bar != nil && entries.count < shown.upperBound }

  /// The results that are shown.
  var results: ArraySlice<QueryCandidate<Item>> {
    entries[min(shown.lowerBound, entries.count)..<min(shown.upperBound, entries.count)]
  }

  /// Moves records to where they belong now: each by its key, with the match that it is, or `nil` when it is none.
  ///
  /// Cost: a look-up for a record that is no match and was none.
  /// - Returns: Whether anything in the window has changed.
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
      entries.removeAll { $0.slot === entry.slot }  // the type's `<` is not an order
    }
  }

  /// Returns the position of the first entry that does not come before another.
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
    guard let capacity, entries.count > capacity * 2 else { return }
    for entry in entries[capacity...] { byKey[entry.slot.key] = nil }
    entries.removeLast(entries.count - capacity)
    bar = entries.last
  }
}
