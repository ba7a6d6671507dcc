/// The answer of a query that an index gives as it is, in its order, with nothing left to check record by record.
///
/// Most queries of an app are such. Nothing here is generic over the records: what is asked of an index is found in a few microseconds, and
/// what remains is to hand the values out.
struct DirectAnswer: Sendable {
  /// A record, and what the index has found out about it.
  struct Found: Sendable {
    let slot: RecordSlot
    var distance: Double?
    var score: Double?
  }

  let found: [Found]

  /// Fails when anything must be checked, sorted or built, or when it is much that is asked for.
  /// - Throws: `.unsupported` when a needed index is not declared.
  init?(_ query: QueryShape, _ state: CollectionState) throws(RepositoryError) {
    guard query.filterCount == 0, query.box == nil, query.near == nil || query.words == nil, let indexes = state.indexes.table,
      QueryPlanner.usable(query, indexes.shapes).allSatisfy({ indexes.bodies[$0].isBuilt })
    else { return nil }
    let choice = try QueryPlanner(query: query, indexes: indexes, recordCount: state.records.count).plan()
    guard choice.givesOrder, choice.bound <= ParallelDecoding.chunk, choice.covered.count == query.conditions.count else { return nil }
    let needed = query.needed ?? .max
    var found: [Found] = []
    found.reserveCapacity(min(needed, choice.estimate))
    switch choice.access {
    case .nothing:
      break
    case .ordered(let index, _, let use):
      guard query.near == nil, query.words == nil, let tree = indexes.tree(index) else { return nil }
      let walk = IndexWalk(tree: tree, columns: indexes.shapes[index].columns.count, keys: indexes.keys)
      for ranks in choice.ranks {
        let wantsMore = walk.visit(ranks, use, from: nil) { slot in
          found.append(Found(slot: slot))
          return found.count < needed
        }
        if !wantsMore { break }
      }
    case .near(let index):
      guard case .geo(let geo) = indexes.bodies[index], let near = query.near else { return nil }
      geo.nearest(to: near.latitude, near.longitude, within: near.within?.meters) { slot, distance in
        found.append(Found(slot: slot, distance: distance))
        return found.count < needed
      }
    case .words(let index):
      guard case .text(let text) = indexes.bodies[index], let words = query.words else { return nil }
      for match in text.search(words, limit: needed) { found.append(Found(slot: match.slot, score: match.score)) }
    case .scan, .box:
      return nil
    }
    self.found = query.skipped == 0 ? found : Array(found.dropFirst(query.skipped))
  }

  /// The values of the records.
  ///
  /// - Throws: never for records that are in an index: they were decoded to get there.
  func items<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) -> [Item] {
    var items: [Item] = []
    items.reserveCapacity(found.count)
    for found in found { items.append(try found.slot.value(coder)) }
    return items
  }
}
