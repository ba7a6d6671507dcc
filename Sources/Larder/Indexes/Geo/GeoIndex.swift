/// The places of records: finds the nearest ones, and those in a box.
///
/// A copy costs O(1), an edit O(log n).
struct GeoIndex: Sendable {
  private(set) var tree: PersistentTree<GeoEntry>
  /// The order of records at one distance.
  let keys: KeyOrder

  /// Makes the index of many records, whose keys are all different, at once: O(n log n).
  init(_ entries: [(GeoCoordinate, RecordSlot)] = [], keys: KeyOrder = .bytes) {
    self.keys = keys
    tree = PersistentTree(sorted: entries.map { GeoEntry($0, $1) }.sorted { $0.key < $1.key })
  }

  /// Makes the index of sorted parts of the records.
  init(sorted parts: [[GeoEntry]], keys: KeyOrder) {
    self.keys = keys
    tree = PersistentTree(
      sorted: parts.reduce([]) { all, part in
        all.isEmpty ? part : all.merged(with: part) { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell }
      })
  }

  var count: Int { tree.count }

  /// Inserts a record, or replaces the one that has its key and its place.
  mutating func insert(_ slot: RecordSlot, at place: GeoCoordinate) { tree.insert(GeoEntry(place, slot)) }

  /// Removes the record with a key from the place where it was inserted.
  /// - Returns: Whether it was there.
  @discardableResult mutating func remove(_ key: RecordKey, at place: GeoCoordinate) -> Bool {
    let key = GeoEntry.key(place, key)
    // The record may be elsewhere in the same cell by now.
    guard tree.find(key)?.place == place else { return false }
    return tree.remove(key) != nil
  }

  /// Removes a record wherever it is: one of a type that does not decode to the same place each time.
  ///
  /// Cost: a look at every entry.
  mutating func sweep(_ key: RecordKey) {
    var left: [GeoEntry] = []
    tree.forEachLeaf { leaf in left += leaf.filter { $0.slot.key == key } }
    for entry in left { tree.remove(entry.key) }
  }
}

extension GeoIndex {
  /// Visits the records in a box, in no order that means anything, until `visit` returns false.
  func forEach(in box: BoundingBox, _ visit: (RecordSlot) -> Bool) {
    guard let ranges = GeoRanges(box) else { return }
    _ = Self.forEach(in: ranges, below: tree.root, visit)
  }

  private static func forEach(in ranges: GeoRanges, below node: PersistentTreeNode<GeoEntry>, _ visit: (RecordSlot) -> Bool) -> Bool {
    switch node {
    case .leaf(let entries):
      for entry in entries where ranges.contains(entry.place) && !visit(entry.slot) { return false }
    case .inner(let children):
      for child in children where ranges.overlaps(child.summary) && !forEach(in: ranges, below: child.node, visit) { return false }
    }
    return true
  }

  /// Returns about how many records are in a box, from some hundred nodes at most.
  func estimate(_ box: BoundingBox) -> Int {
    guard let ranges = GeoRanges(box) else { return 0 }
    return estimate { ranges.overlaps($0) ? ranges.share(of: $0) : 0 }
  }

  /// Returns about how many records are within a distance in metres, from some hundred nodes at most.
  func estimate(latitude: Double, longitude: Double, within meters: Double) -> Int {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude), meters >= 0 else { return 0 }
    let (point, limit) = (SpherePoint(center), GreatCircle.mostSquaredChord(within: meters))
    return estimate { area in
      let (least, most) = (area.leastSquaredChord(to: point), area.mostSquaredChord(to: point))
      if least > limit { return 0 }
      // On a surface the number grows with the square of the chord.
      return most <= limit ? 1 : max(0.01, (limit - least) / (most - least))
    }
  }

  /// Adds up nodes by the share of their area, and goes deeper only where that is neither nothing nor all.
  private func estimate(_ share: (GeoArea) -> Double) -> Int {
    var level = [tree.root]
    var sum = 0.0
    var budget = 256
    while !level.isEmpty {
      var next: [PersistentTreeNode<GeoEntry>] = []
      for case .inner(let children) in level {
        budget -= children.count
        for child in children {
          let part = share(child.summary)
          if part > 0, part < 1, budget > 0, !child.node.isLeaf {
            next.append(child.node)
          } else {
            sum += part * Double(child.count)
          }
        }
      }
      // A tree of one leaf has no areas; it is small.
      if case .leaf(let entries) = tree.root { sum += entries.reduce(0) { $0 + share(GeoArea($1)) } }
      level = next
    }
    return Int(sum.rounded(.up))
  }
}
