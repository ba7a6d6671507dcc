/// The declared indexes of a collection, as far as they have been built, over the records of one commit.
///
/// A value beside the records: a copy shares everything with the original, and a commit changes its own copy.
struct IndexSet<Item: Codable & Identifiable & Sendable>: CollectionIndexes where Item.ID: Hashable & Codable & Sendable {
  typealias Body = IndexBody

  let declarations: [RepositoryIndex<Item>]
  let coder: RecordCoder<Item>
  let shapes: [IndexShape]
  /// How the entries of each index compare.
  ///
  /// Kept, as ``areUnique`` is: every save asks for them, and a key path that is written in generic code is made anew at each use.
  let orders: [IndexEntry.Order]
  let areUnique: Bool
  private(set) var bodies: [Body]

  init(_ declarations: [RepositoryIndex<Item>], _ coder: RecordCoder<Item>) {
    self.declarations = declarations
    self.coder = coder
    shapes = declarations.map { IndexShape($0) }
    orders = declarations.map { IndexEntry.Order(descending: $0.columns.map { $0.isDescending }, keys: coder.keys.order) }
    areUnique = declarations.contains { $0.isUnique }
    bodies = declarations.map { _ in .absent }
  }

  var areDeclared: Bool { true }

  var needsValues: Bool {
    bodies.contains { if case .absent = $0 { false } else { true } }
  }

  /// Whether an index can be used.
  func isBuilt(_ index: Int) -> Bool { bodies[index].isBuilt }

  var table: IndexTable? { IndexTable(shapes: shapes, bodies: bodies, keys: coder.keys.order) }

  func tree(_ index: Int) -> CountedTree<IndexEntry>? {
    if case .ordered(let tree) = bodies[index] { tree } else { nil }
  }

  // MARK: Following commits

  mutating func replace(_ old: RecordSlot?, with new: RecordSlot?) -> Bool {
    guard needsValues else { return false }
    var isContested = false
    for index in bodies.indices {
      // Taken out of the array while it is changed, so that it has one owner and changes in place.
      var body = Body.absent
      swap(&body, &bodies[index])
      if change(&body, index, old, new) { isContested = true }
      swap(&body, &bodies[index])
    }
    return isContested
  }

  /// Follows a change of one record in one index.
  /// - Returns: Whether the index is unique and holds the new values for another record, too.
  private func change(_ body: inout Body, _ index: Int, _ old: RecordSlot?, _ new: RecordSlot?) -> Bool {
    let declaration = declarations[index]
    var isContested = false
    switch body {
    case .absent:
      break
    case .building(var log):
      body = .absent
      log.append((old, new))
      body = .building(log)
    case .ordered(var tree):
      body = .absent
      let (before, after) = (old.flatMap { entry(for: $0, index) }, new.flatMap { entry(for: $0, index) })
      // Where the values are the same, the new entry takes the place of the old one.
      let isMoved = before != after
      if let before, isMoved { tree.remove(before) }
      if let after {
        if declaration.isUnique, isMoved {
          let (left, right) = tree.insertBetween(after)
          // Entries with the same values lie side by side. Whoever came first was alone, so it is enough to look when the second one comes.
          isContested = (left?.values == after.values || right?.values == after.values) && !after.values.contains(.null)
        } else {
          tree.insert(after)
        }
      }
      body = .ordered(tree)
    case .geo(var geo):
      body = .absent
      if let old, let place = place(of: old, declaration) {
        geo.remove(latitude: place.latitude, longitude: place.longitude, key: old.key)
      }
      if let new, let place = place(of: new, declaration) {
        geo.insert(latitude: place.latitude, longitude: place.longitude, new)
      }
      body = .geo(geo)
    case .text(var text):
      body = .absent
      let (before, after) = (old.flatMap { texts(of: $0, declaration) }, new.flatMap { texts(of: $0, declaration) })
      if let new, let after {
        text.update(new, from: before ?? [], to: after)
      } else if let old, let before {
        text.remove(old.key, texts: before)
      }
      body = .text(text)
    }
    return isContested
  }

  // MARK: What an index reads of a record

  /// The value of a record, or `nil` when it does not decode, and then it is in no index.
  func value(_ slot: RecordSlot) -> DecodedValue<Item>? {
    do throws(RepositoryError) { return try slot.decoded(coder) } catch { return nil }  // listed by `undecodable`
  }

  /// As ``value(_:)``, and copies it.
  func item(_ slot: RecordSlot) -> Item? { value(slot)?.item }

  func entry(for slot: RecordSlot, _ index: Int) -> IndexEntry? {
    value(slot).map { value in
      IndexEntry(values: declarations[index].columns.map { $0.value(value.item) }, slot: slot, order: orders[index])
    }
  }

  private func place(of slot: RecordSlot, _ declaration: RepositoryIndex<Item>) -> (latitude: Double, longitude: Double)? {
    guard case .geo(let place) = declaration.kind else { return nil }
    return item(slot).flatMap(place)
  }

  private func texts(of slot: RecordSlot, _ declaration: RepositoryIndex<Item>) -> [String]? {
    guard case .fullText(let texts) = declaration.kind else { return nil }
    return item(slot).map(texts)
  }

  // MARK: Building

  /// Begins to note what changes, for an index that is about to be made from the present records.
  mutating func startBuilding(_ index: Int) {
    if case .absent = bodies[index] { bodies[index] = .building([]) }
  }

  /// Puts a made index in place, after what has changed since it was begun.
  mutating func finishBuilding(_ index: Int, _ made: Body) {
    guard case .building(let log) = bodies[index] else { return }
    var body = made
    for (old, new) in log { _ = change(&body, index, old, new) }
    bodies[index] = body
  }

  /// Makes an index of records at once, on this thread and as many others as there are cores.
  mutating func build(_ index: Int, from records: RecordMap) {
    if !isBuilt(index) { bodies[index] = body(index, over: records.ordered()) }
  }

  /// An index over these records.
  ///
  /// Cost: decodes what was not touched yet, reads, and sorts. Blocks: not for the cooperative pool.
  func body(_ index: Int, over slots: [RecordSlot]) -> Body {
    let declaration = declarations[index]
    switch declaration.kind {
    case .ordered:
      let entries = ParallelWork.map(slots) { slot in self.entry(for: slot, index) }
      return .ordered(CountedTree(sorted: ParallelWork.sorted(entries.compactMap { $0 })))
    case .geo:
      let places = ParallelWork.map(slots) { slot in
        self.place(of: slot, declaration).flatMap { GeoCoordinate(latitude: $0.latitude, longitude: $0.longitude) }.map { ($0, slot) }
      }
      return .geo(GeoIndex(places.compactMap { $0 }, keys: coder.keys.order))
    case .fullText:
      let portions = ParallelWork.mapParts(slots) { part in
        TextPortion(part.compactMap { slot in self.texts(of: slot, declaration).map { (slot, $0) } })
      }
      return .text(TextIndex(portions, keys: coder.keys.order))
    }
  }
}
