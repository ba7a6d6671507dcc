internal import Foundation

/// A traversal of a part of an ordered index in the order of a query.
///
/// Entries whose first columns are equal form a group. Groups come in the order of the index or in reverse. Within a group the record id
/// decides, as it does among equal results of the query.
struct IndexWalk {
  let tree: PersistentTree<IndexEntry>
  /// Number of columns of the index.
  let columns: Int
  let keys: KeyOrder

  /// Visits the entries of a range of ranks in the order of a query, until the body returns `false`.
  ///
  /// - Parameter start: Position from which to begin, for a page after the first. Entries of its group that were visited earlier may be
  ///   visited again.
  /// - Returns: False if the body ended the walk.
  func visit(_ ranks: Range<Int>, _ use: IndexOrderUse, from start: Start?, _ body: (RecordSlot) -> Bool) -> Bool {
    guard case .groups(let grouped, let isReversed) = use else { return forward(ranks, body) }
    // With all columns given, the position has a rank of its own, and the walk skips the earlier part of its group.
    if grouped == columns, let start, start.values.count == columns { return entries(ranks, from: start, isReversed, body) }
    let ranks = start.map { self.ranks(ranks, from: $0.values, isReversed) } ?? ranks
    if grouped < columns { return wholeGroups(ranks, grouped, isReversed, body) }
    return isReversed ? groupsReversed(ranks, body) : forward(ranks, body)
  }

  /// A position in the order of a query: the values of a group, and a record's key in it.
  struct Start {
    let values: [IndexValue]
    let key: RecordKey
  }

  /// Visits the entries from a position inside a group, which may hold most of the index.
  private func entries(_ ranks: Range<Int>, from start: Start, _ isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    let position = tree.rank(of: start.values, start.key)
    guard isReversed else { return forward((position..<tree.count).clamped(to: ranks), body) }
    // A group runs forwards by id even where groups come in reverse, so the rest of this one comes first.
    guard forward((position..<tree.end(of: start.values)).clamped(to: ranks), body) else { return false }
    return groupsReversed((0..<tree.start(of: start.values)).clamped(to: ranks), body)
  }

  private func ranks(_ ranks: Range<Int>, from start: [IndexValue], _ isReversed: Bool) -> Range<Int> {
    ranks.clamped(to: isReversed ? 0..<tree.end(of: start) : tree.start(of: start)..<tree.count)
  }

  private func forward(_ ranks: Range<Int>, _ body: (RecordSlot) -> Bool) -> Bool {
    var wantsMore = true
    tree.forEach(in: ranks) { entry in
      wantsMore = body(entry.slot)
      return wantsMore
    }
    return wantsMore
  }

  /// Visits groups of fewer columns than the index has, each gathered and sorted by id.
  private func wholeGroups(_ ranks: Range<Int>, _ grouped: Int, _ isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    var group: [RecordSlot] = []
    var first: IndexEntry?
    var wantsMore = true
    // Within such a group the index sorts by its further columns, not by id.
    func flush() {
      for slot in keys.sorted(group) where wantsMore { wantsMore = body(slot) }
      group.removeAll(keepingCapacity: true)
    }
    tree.forEach(in: ranks, reversed: isReversed) { entry in
      if first.map({ !entry.hasValues(of: $0, inFirst: grouped) }) ?? true {
        flush()
        first = entry
      }
      if wantsMore { group.append(entry.slot) }
      return wantsMore
    }
    flush()
    return wantsMore
  }

  /// Number of entries from which a group is visited in place and not gathered.
  private static let large = 16

  /// Visits the groups from the last to the first, the entries of each forwards.
  private func groupsReversed(_ ranks: Range<Int>, _ body: (RecordSlot) -> Bool) -> Bool {
    var end = ranks.upperBound
    while end > ranks.lowerBound {
      // Two lookups detect a large group at the end, which is then visited in place: no array of its entries is made.
      let last = tree.entry(at: end - 1)
      if end - ranks.lowerBound >= Self.large, tree.entry(at: end - Self.large).hasValues(of: last) {
        let start = max(ranks.lowerBound, tree.start(of: last.values))
        guard forward(start..<end, body) else { return false }
        end = start
        continue
      }
      var group: [RecordSlot] = []
      var first: IndexEntry?
      var wantsMore = true
      var visited = 0
      // Most groups are small, and one descent of the tree serves many of them.
      tree.forEach(in: ranks.lowerBound..<end, reversed: true) { entry in
        if let other = first, !entry.hasValues(of: other) {
          for slot in group.reversed() where wantsMore { wantsMore = body(slot) }
          visited += group.count
          group.removeAll(keepingCapacity: true)
          first = nil
        }
        if first == nil { first = entry }
        group.append(entry.slot)
        return wantsMore && group.count < Self.large
      }
      guard wantsMore else { return false }
      guard let first else { return true }
      end -= visited
      // The start of this group was not reached, because the group is large or the range ends. Descend to it and visit forwards.
      let start = max(ranks.lowerBound, tree.start(of: first.values))
      guard forward(start..<end, body) else { return false }
      end = start
    }
    return true
  }
}

extension IndexWalk {
  /// A piece of a walk: a range of ranks, and the order in which its entries come.
  struct OrderedRange: Sendable {
    let ranks: Range<Int>
    let use: IndexOrderUse

    init(_ ranks: Range<Int>, _ use: IndexOrderUse) { (self.ranks, self.use) = (ranks, use) }
  }

  /// Returns the part of a range behind its first `count` results, and the number of results of that part still to skip.
  ///
  /// It visits none of the skipped entries. Nothing is left to skip if the index has exactly the columns of the query's groups: each group
  /// is then in the order of the ids, and the rest of a group is walked from its rank. In a wider index only the walk determines the order
  /// within a group. Cost: some searches of the tree.
  func skipping(_ count: Int, of ranks: Range<Int>, _ use: IndexOrderUse) -> (rest: [OrderedRange], inside: Int) {
    guard case .groups(let grouped, let isReversed) = use, count > 0 else { return ([OrderedRange(ranks, use)], count) }
    guard count < ranks.count else { return ([], 0) }
    if !isReversed, grouped == columns { return ([OrderedRange(ranks.lowerBound + count..<ranks.upperBound, use)], 0) }
    let position = isReversed ? ranks.upperBound - 1 - count : ranks.lowerBound + count
    // The skipped results end inside this group.
    let group = Array(tree.entry(at: position).values.prefix(grouped))
    let start = max(ranks.lowerBound, tree.start(of: group))
    guard isReversed else { return ([OrderedRange(start..<ranks.upperBound, use)], count - (start - ranks.lowerBound)) }
    let end = min(ranks.upperBound, tree.end(of: group))
    let inside = count - (ranks.upperBound - end)
    guard grouped == columns else { return ([OrderedRange(ranks.lowerBound..<end, use)], inside) }
    // The group's own rest runs forwards, the groups before it in reverse.
    return ([OrderedRange(start + inside..<end, .none), OrderedRange(ranks.lowerBound..<start, use)], 0)
  }
}

/// The way in which an ordered index yields the order of the results.
enum IndexOrderUse: Equatable, Sendable {
  case none
  /// Entries with equal values in the first `columns` form a group, and groups come in the query's order or in reverse.
  case groups(columns: Int, isReversed: Bool)
}
