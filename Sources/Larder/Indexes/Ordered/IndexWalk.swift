internal import Foundation

/// A walk through a part of an ordered index in the order of a query.
///
/// Entries whose first columns are equal form a group. Groups come in the order of the index or in reverse; within a group the id decides,
/// as it does among the equals of the query.
struct IndexWalk {
  let tree: PersistentTree<IndexEntry>
  /// The number of columns of the index.
  let columns: Int
  let keys: KeyOrder

  /// Visits the entries of the ranks, until the body returns `false`.
  ///
  /// - Parameter start: Where to begin, when what comes before was visited earlier; what comes just before may be visited again.
  /// - Returns: Whether the body wants more.
  func visit(_ ranks: Range<Int>, _ use: IndexOrderUse, from start: Start?, _ body: (RecordSlot) -> Bool) -> Bool {
    guard case .groups(let grouped, let isReversed) = use else { return forward(ranks, body) }
    if grouped == columns, let start, start.values.count == columns { return entries(ranks, from: start, isReversed, body) }
    let ranks = start.map { self.ranks(ranks, from: $0.values, isReversed) } ?? ranks
    if grouped < columns { return wholeGroups(ranks, grouped, isReversed, body) }
    return isReversed ? groupsReversed(ranks, body) : forward(ranks, body)
  }

  /// A position in the order of a query: the values of a group, and a key in it.
  struct Start {
    let values: [IndexValue]
    let key: RecordKey
  }

  /// Visits the entries from the middle of a group on, which may be most of the index.
  private func entries(_ ranks: Range<Int>, from start: Start, _ isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    let position = tree.rank(of: start.values, start.key)
    guard isReversed else { return forward((position..<tree.count).clamped(to: ranks), body) }
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

  /// Visits groups of fewer columns than the index has: each is gathered and sorted by id.
  private func wholeGroups(_ ranks: Range<Int>, _ grouped: Int, _ isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    var group: [RecordSlot] = []
    var first: IndexEntry?
    var wantsMore = true
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

  /// The number of entries from which a group is visited in place, and not gathered.
  private static let large = 16

  /// Visits the groups from the last to the first, each forwards.
  private func groupsReversed(_ ranks: Range<Int>, _ body: (RecordSlot) -> Bool) -> Bool {
    var end = ranks.upperBound
    while end > ranks.lowerBound {
      // A large group at the end is gone to at once: two looks tell.
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
      // Most groups are small, and one way through the tree serves many of them.
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
      // The beginning of a large group, or of the range, was not seen yet: go to it, and forwards from there.
      let start = max(ranks.lowerBound, tree.start(of: first.values))
      guard forward(start..<end, body) else { return false }
      end = start
    }
    return true
  }
}

extension IndexWalk {
  /// A piece of a walk: some ranks, and the order in which their entries come.
  struct Stretch: Sendable {
    let ranks: Range<Int>
    let use: IndexOrderUse

    init(_ ranks: Range<Int>, _ use: IndexOrderUse) { (self.ranks, self.use) = (ranks, use) }
  }

  /// Returns what is left of a part behind its first records in the order of a query, without a visit to them, and how many of the rest are
  /// still to be left out.
  ///
  /// None are where the index has just the columns of the query's groups: then a group lies in the order of the ids, and what is left of
  /// one is walked from its rank. Of wider indexes only the walk knows the order within a group. Cost: some searches.
  func skipping(_ count: Int, of ranks: Range<Int>, _ use: IndexOrderUse) -> (rest: [Stretch], inside: Int) {
    guard case .groups(let grouped, let isReversed) = use, count > 0 else { return ([Stretch(ranks, use)], count) }
    guard count < ranks.count else { return ([], 0) }
    if !isReversed, grouped == columns { return ([Stretch(ranks.lowerBound + count..<ranks.upperBound, use)], 0) }
    let position = isReversed ? ranks.upperBound - 1 - count : ranks.lowerBound + count
    let group = Array(tree.entry(at: position).values.prefix(grouped))
    let start = max(ranks.lowerBound, tree.start(of: group))
    guard isReversed else { return ([Stretch(start..<ranks.upperBound, use)], count - (start - ranks.lowerBound)) }
    let end = min(ranks.upperBound, tree.end(of: group))
    let inside = count - (ranks.upperBound - end)
    guard grouped == columns else { return ([Stretch(ranks.lowerBound..<end, use)], inside) }
    return ([Stretch(start + inside..<end, .none), Stretch(ranks.lowerBound..<start, use)], 0)
  }
}

/// The use of an ordered index for the order of the results.
enum IndexOrderUse: Equatable, Sendable {
  case none
  /// Entries whose first so many columns are equal belong together; the groups come in the query's order, or in reverse.
  case groups(columns: Int, isReversed: Bool)
}
