/// The answer of a query that an index gives as it is, with nothing left to check record by record.
///
/// Most queries of an app are such. Nothing here is generic over the records: what is asked of an index is found in a few microseconds, and
/// what remains is to hand the values out.
struct DirectAnswer: Sendable {
  /// Where the records come from.
  private enum Source: Sendable {
    case nothing
    /// Parts of an ordered index, in the order of the query behind so many that are left out; or to be sorted by id.
    case ordered(IndexWalk, [IndexWalk.Stretch], skipped: Int)
    case byID(IndexWalk, [Range<Int>])
    case near(GeoIndex, QueryShape.Area)
    case words(TextIndex, TextQuery)
  }

  private let source: Source
  private let maximum: Int?
  private let skipped: Int
  private let needed: Int
  /// How many records will be looked at, at most.
  let bound: Int

  /// Fails when anything must be checked or built, when it is many places or words that are asked for, and for a strict query.
  /// - Throws: `.unsupported` when a needed index is not declared.
  init?(_ query: QueryShape, _ state: CollectionState) throws(RepositoryError) {
    guard !query.isStrict, query.filterCount == 0, query.boxes.isEmpty, query.areas.count <= 1, query.near == nil || query.words == nil,
      let indexes = state.indexes.table, QueryPlanner.usable(query, indexes.shapes).allSatisfy({ indexes.bodies[$0].isBuilt })
    else { return nil }
    let choice = try QueryPlanner(query: query, indexes: indexes, recordCount: state.records.count).plan()
    guard choice.covered.count == query.conditions.count else { return nil }
    (maximum, skipped, needed) = (query.maximum, query.skipped, query.needed ?? .max)
    switch choice.access {
    case .nothing:
      (source, bound) = (.nothing, 0)
    case .ordered(let index, _, let use):
      guard query.near == nil, query.words == nil, let tree = indexes.tree(index) else { return nil }
      let walk = IndexWalk(tree: tree, columns: indexes.shapes[index].columns.count, keys: indexes.keys)
      if choice.givesOrder, let ranks = choice.ranks.first, choice.ranks.count == 1 {
        let (rest, inside) = walk.skipping(query.skipped, of: ranks, use)
        source = .ordered(walk, rest, skipped: inside)
        let reach = rest.reduce(0) { $0 + $1.ranks.count }
        bound = min(reach, query.maximum.map { $0.addingReportingOverflow(inside).overflow ? .max : $0 + inside } ?? .max)
      } else if query.order.isEmpty {
        (source, bound) = (.byID(walk, choice.ranks), choice.reach)
      } else {
        return nil
      }
    case .near(let index):
      guard choice.givesOrder, choice.bound <= ParallelDecoding.chunk, case .geo(let geo) = indexes.bodies[index], let near = query.near
      else { return nil }
      (source, bound) = (.near(geo, near), choice.bound)
    case .words(let index):
      guard choice.givesOrder, choice.bound <= ParallelDecoding.chunk, case .text(let text) = indexes.bodies[index],
        let words = query.words
      else { return nil }
      (source, bound) = (.words(text, words), choice.bound)
    case .scan, .box:
      return nil
    }
  }

  /// The records, in their order.
  private func slots() -> [RecordSlot] {
    var found: [RecordSlot] = []
    switch source {
    case .nothing:
      return []
    case .ordered(let walk, let rest, let inside):
      guard maximum != 0 else { return [] }
      found.reserveCapacity(bound)
      var left = inside
      for stretch in rest {
        let wantsMore = walk.visit(stretch.ranks, stretch.use, from: nil) { slot in
          if left > 0 {
            left -= 1
            return true
          }
          found.append(slot)
          return found.count < maximum ?? .max
        }
        if !wantsMore { break }
      }
      return found
    case .byID(let walk, let ranks):
      found.reserveCapacity(bound)
      for ranks in ranks {
        _ = walk.visit(ranks, .none, from: nil) { slot in
          found.append(slot)
          return true
        }
      }
      found.sort { walk.keys.isBefore($0.key, $1.key) }
    case .near(let geo, let near):
      guard needed > 0 else { return [] }
      geo.nearest(to: near.latitude, near.longitude, within: near.within?.meters) { slot, _ in
        found.append(slot)
        return found.count < needed
      }
    case .words(let text, let words):
      found = text.search(words, limit: needed).map(\.slot)
    }
    return Array(found.dropFirst(skipped).prefix(maximum ?? .max))
  }

  /// The values of the records.
  ///
  /// - Throws: never for records that are in an index: they were decoded to get there.
  func items<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> [Item] {
    let slots = slots()
    var items: [Item] = []
    items.reserveCapacity(slots.count)
    for slot in slots { items.append(try slot.value(coder)) }
    return items
  }
}
