/// Where the records are: finds the nearest ones, and those in a box.
///
/// A copy costs O(1), an edit O(log n). Places that are none (NaN, infinity, a latitude beyond ±90) are not indexed: inserting and
/// removing them does nothing. Longitudes beyond ±180 are wrapped.
struct GeoIndex: Sendable {
  private(set) var tree: SummaryTree<GeoEntry>
  /// The order of records at one distance.
  let keys: KeyOrder

  /// Makes the index of many records at once: O(n log n).
  ///
  /// Of several entries with the same cell and key only the last is kept; a key belongs in the index once.
  init(_ entries: [(GeoCoordinate, RecordSlot)] = [], keys: KeyOrder = .bytes) {
    self.keys = keys
    let sorted = entries.map { GeoEntry($0, $1) }.sorted { $0.key < $1.key }  // a stable sort
    var unique: [GeoEntry] = []
    unique.reserveCapacity(sorted.count)
    for entry in sorted {
      if let last = unique.last, last.key == entry.key { unique.removeLast() }
      unique.append(entry)
    }
    tree = SummaryTree(sorted: unique)
  }

  var count: Int { tree.count }

  /// Adds a record, or takes its place if it is there already with the same coordinates.
  mutating func insert(latitude: Double, longitude: Double, _ slot: RecordSlot) {
    guard let place = GeoCoordinate(latitude: latitude, longitude: longitude) else { return }
    tree.insert(GeoEntry(place, slot))
  }

  /// Removes the record with a key from the place where it was inserted; whether it was there.
  @discardableResult mutating func remove(latitude: Double, longitude: Double, key: RecordKey) -> Bool {
    guard let place = GeoCoordinate(latitude: latitude, longitude: longitude) else { return false }
    let key = GeoEntry.key(place, key)
    // The record may be elsewhere in the same cell by now.
    guard tree.find(key)?.place == place else { return false }
    return tree.remove(key) != nil
  }
}

extension GeoIndex {
  /// Visits the records in a box, in no order that means anything, until `visit` returns false.
  func within(_ box: BoundingBox, _ visit: (RecordSlot) -> Bool) {
    guard let ranges = GeoRanges(box) else { return }
    _ = Self.within(ranges, tree.root, visit)
  }

  private static func within(_ ranges: GeoRanges, _ node: SummaryTreeNode<GeoEntry>, _ visit: (RecordSlot) -> Bool) -> Bool {
    switch node {
    case .leaf(let entries):
      for entry in entries where ranges.contains(entry.place) && !visit(entry.slot) { return false }
    case .inner(let children):
      for child in children where ranges.overlaps(child.summary) && !within(ranges, child.node, visit) { return false }
    }
    return true
  }

  /// About how many records are in a box, by looking at some hundred nodes at most.
  func estimate(_ box: BoundingBox) -> Int {
    guard let ranges = GeoRanges(box) else { return 0 }
    return estimate { ranges.overlaps($0) ? ranges.share(of: $0) : 0 }
  }

  /// About how many records are within a distance in metres, by looking at some hundred nodes at most.
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
      var next: [SummaryTreeNode<GeoEntry>] = []
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
