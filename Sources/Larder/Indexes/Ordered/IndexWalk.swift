internal import Foundation

/// A traversal of a range of an ordered index in the order of a query's results.
///
/// The entries with equal values in the columns by which the query sorts form a group. The traversal visits the groups in the order of the
/// index or in reverse. Within a group, the traversal visits the records in the order of their ids, because queries sort equal results by
/// id.
struct IndexWalk {
  let tree: PersistentTree<IndexEntry>
  /// Number of columns of the index.
  let columns: Int
  let keys: KeyOrder

  /// Visits the entries of a range of ranks in the order of a query, until `body` returns `false`.
  ///
  /// - Parameter start: Position at which the traversal begins, for a page of results after the first page. The traversal may visit earlier
  ///   entries of the position's group again.
  /// - Returns: False if `body` ended the traversal.
  func visit(_ ranks: Range<Int>, _ use: IndexOrderUse, from start: Start?, _ body: (RecordSlot) -> Bool) -> Bool {
    guard case .groups(let grouped, let isReversed) = use else { return forward(ranks, body) }
    // If the start position has a value for every column of the index, the tree is searched for the rank of the position. The traversal
    // then begins at that rank and does not visit the earlier entries of the position's group again.
    if grouped == columns, let start, start.values.count == columns { return entries(ranks, from: start, isReversed, body) }
    let ranks = start.map { self.ranks(ranks, from: $0.values, isReversed) } ?? ranks
    if grouped < columns { return wholeGroups(ranks, columns: grouped, isReversed: isReversed, body) }
    return isReversed ? groupsReversed(ranks, body) : forward(ranks, body)
  }

  /// A position in the order of a query: the values of a group of entries, and the key of a record in the group.
  struct Start {
    let values: [IndexValue]
    let key: RecordKey
  }

  /// Visits the entries from a position inside a group of entries with equal values.
  ///
  /// The visit begins at the position's rank and not at the start of its group, because one group may hold most of the index.
  private func entries(_ ranks: Range<Int>, from start: Start, _ isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    let position = tree.rank(of: start.values, start.key)
    guard isReversed else { return forward((position..<tree.count).clamped(to: ranks), body) }
    // A reversed traversal still visits each group in ascending order of ids. The traversal therefore visits the rest of the position's
    // group first, and then the earlier groups in reverse.
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

  /// Visits the groups of a query that sorts by fewer columns than the index has, with the records of each group sorted by id.
  private func wholeGroups(_ ranks: Range<Int>, columns grouped: Int, isReversed: Bool, _ body: (RecordSlot) -> Bool) -> Bool {
    var group: [RecordSlot] = []
    var first: IndexEntry?
    var wantsMore = true
    // The index sorts the entries of a group by the columns after the first `columns`, so each group is gathered in an array and sorted by
    // id.
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

  /// Number of entries from which `groupsReversed` visits a group in place instead of gathering it in an array.
  fileprivate static let large = 16

  /// Visits the groups of entries with equal values from the last to the first, and the entries of each group in ascending order.
  private func groupsReversed(_ ranks: Range<Int>, _ body: (RecordSlot) -> Bool) -> Bool {
    var end = ranks.upperBound
    while end > ranks.lowerBound {
      // If the last entry and the 16th entry from the end have equal values, the last group is large. A large group is visited in place,
      // without an array of its entries.
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
      // Most groups are small. One reversed visit of the tree serves many small groups, while a search for each group's start would cost
      // more.
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
      // The reversed visit ended inside the group of `first`, because the group is large or the range of ranks ends. The tree is therefore
      // searched for the start of the group, and the group is visited in place.
      let start = max(ranks.lowerBound, tree.start(of: first.values))
      guard forward(start..<end, body) else { return false }
      end = start
    }
    return true
  }
}

extension IndexWalk {
  /// A range of ranks of an ordered index, and the order in which a traversal visits its entries.
  struct OrderedRange: Sendable {
    let ranks: Range<Int>
    let use: IndexOrderUse

    init(_ ranks: Range<Int>, _ use: IndexOrderUse) { (self.ranks, self.use) = (ranks, use) }
  }

  /// Returns the part of a range after its first `count` results, and the number of results of that part that the caller must still skip.
  ///
  /// `skipping` visits none of the skipped entries. If the query sorts by all columns of the index, the entries of each group are in the
  /// order of ids. A traversal can then begin at any rank inside a group, and the returned number is 0. If the index has more columns than
  /// the query sorts by, only a traversal of the whole group sorts the group by id. The returned part then begins with a whole group. With
  /// ``IndexOrderUse/none``, `skipping` skips no entry, and returns the whole range and `count`. Cost: a few searches of the tree, each
  /// O(log n).
  func skipping(_ count: Int, of ranks: Range<Int>, _ use: IndexOrderUse) -> (rest: [OrderedRange], inside: Int) {
    guard case .groups(let grouped, let isReversed) = use, count > 0 else { return ([OrderedRange(ranks, use)], count) }
    guard count < ranks.count else { return ([], 0) }
    if !isReversed, grouped == columns { return ([OrderedRange(ranks.lowerBound + count..<ranks.upperBound, use)], 0) }
    let position = isReversed ? ranks.upperBound - 1 - count : ranks.lowerBound + count
    // `group` holds the values of the group of entries in which the skipped results end.
    let group = Array(tree.entry(at: position).values.prefix(grouped))
    let start = max(ranks.lowerBound, tree.start(of: group))
    guard isReversed else { return ([OrderedRange(start..<ranks.upperBound, use)], count - (start - ranks.lowerBound)) }
    let end = min(ranks.upperBound, tree.end(of: group))
    let inside = count - (ranks.upperBound - end)
    guard grouped == columns else { return ([OrderedRange(ranks.lowerBound..<end, use)], inside) }
    // A reversed traversal visits the rest of the group in ascending order of ids, and then the earlier groups in reverse.
    return ([OrderedRange(start + inside..<end, .none), OrderedRange(ranks.lowerBound..<start, use)], 0)
  }
}

/// The relation between the order of an ordered index and the order of a query's results.
enum IndexOrderUse: Equatable, Sendable {
  /// The entries are visited in the order of the index, without regard to groups.
  case none
  /// The results come in groups of entries with equal values in the first `columns` columns, in the order of the index or in reverse.
  case groups(columns: Int, isReversed: Bool)
}

// MARK: - Indexes in the storage

extension StoredEntries {
  /// Visits the entries of a range in the order of a query, as ``IndexWalk/visit(_:_:from:_:)`` does.
  ///
  /// - Parameter columns: Number of columns of the index.
  /// - Returns: False if `body` ended the traversal.
  @discardableResult
  func visit(
    _ range: Range<Position>, _ use: IndexOrderUse, columns: Int, from start: IndexWalk.Start?,
    _ body: (IndexEntry) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) -> Bool {
    guard case .groups(let grouped, let isReversed) = use else { return try forEach(in: range, body) }
    var range = range
    let first = Position(block: 0, offset: 0)
    if let start {
      if grouped == columns, start.values.count == columns {
        let position = try position(of: start.values, start.key)
        guard isReversed else { return try forEach(in: max(position, range.lowerBound)..<max(position, range.upperBound), body) }
        // A reversed traversal still visits each group in ascending order of ids, so the rest of the position's group comes first.
        let rest = try (position..<max(position, end(of: start.values))).clamped(to: range)
        guard try forEach(in: rest, body) else { return false }
        return try groupsReversed((first..<self.start(of: start.values)).clamped(to: range), body)
      }
      let bounds = isReversed ? first..<(try end(of: start.values)) : (try self.start(of: start.values))..<(try end())
      range = range.clamped(to: bounds)
    }
    if grouped < columns { return try wholeGroups(range, columns: grouped, isReversed: isReversed, body) }
    return isReversed ? try groupsReversed(range, body) : try forEach(in: range, body)
  }

  /// Visits the groups of a query that sorts by fewer columns than the index has, with the records of each group sorted by id.
  private func wholeGroups(
    _ range: Range<Position>, columns: Int, isReversed: Bool, _ body: (IndexEntry) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) -> Bool {
    var group: [IndexEntry] = []
    let keys = run.order.keys
    func visitGroup() throws(RepositoryError) -> Bool {
      for entry in group.sorted(by: { keys.isBefore($0.slot.key, $1.slot.key) }) { if try !body(entry) { return false } }
      group.removeAll(keepingCapacity: true)
      return true
    }
    let isWhole = try forEach(in: range, reversed: isReversed) { (entry) throws(RepositoryError) -> Bool in
      if let first = group.first, !entry.hasValues(of: first, inFirst: columns) {
        guard try visitGroup() else { return false }
      }
      group.append(entry)
      return true
    }
    return isWhole ? try visitGroup() : false
  }

  /// Visits the groups of entries with equal values from the last to the first, and the entries of each group in ascending order.
  private func groupsReversed(
    _ range: Range<Position>, _ body: (IndexEntry) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) -> Bool {
    var end = range.upperBound
    while end > range.lowerBound {
      var group: [IndexEntry] = []
      var wantsMore = true
      // Most groups are small. One reversed visit serves many small groups.
      try forEach(in: range.lowerBound..<end, reversed: true) { (entry) throws(RepositoryError) -> Bool in
        if let first = group.first, !entry.hasValues(of: first) {
          for entry in group.reversed() where wantsMore { wantsMore = try body(entry) }
          group.removeAll(keepingCapacity: true)
        }
        group.append(entry)
        return wantsMore && group.count < IndexWalk.large
      }
      guard wantsMore else { return false }
      guard let first = group.first else { return true }
      // The visit has ended in a large group, or at the first entry of the range. A large group may hold most of the index, so it is
      // visited in place.
      let start = max(range.lowerBound, try self.start(of: first.values))
      let next = min(end, try self.end(of: first.values))
      // In a damaged index, the keys may not have the order of their values, and this loop would be endless.
      guard start < next else { throw run.damaged }
      guard try forEach(in: start..<next, body) else { return false }
      end = start
    }
    return true
  }
}
