internal import HeapModule

/// A geographic index: finds the records nearest to a place, and those in a box.
///
/// A copy costs O(1), an edit O(log n).
struct GeoIndex: Sendable {
  private(set) var tree: PersistentTree<GeoEntry>
  /// Order of records at equal distance.
  let keys: KeyOrder

  /// Creates the index of many records, whose keys must all be different, in O(n log n).
  init(_ entries: [(GeoCoordinate, RecordSlot)] = [], keys: KeyOrder = .bytes) {
    self.keys = keys
    tree = PersistentTree(sorted: entries.map { GeoEntry($0, $1) }.sorted { $0.key < $1.key })
  }

  /// Creates the index from parts of the records, each sorted.
  init(sorted parts: [[GeoEntry]], keys: KeyOrder) {
    self.keys = keys
    tree = PersistentTree(
      sorted: parts.reduce([]) { all, part in
        all.isEmpty ? part : all.merged(with: part) { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell }
      })
  }

  var count: Int { tree.count }

  /// Inserts a record, or replaces its entry in the same cell of the curve.
  ///
  /// See ``GeoEntry``.
  mutating func insert(_ slot: RecordSlot, at place: GeoCoordinate) { tree.insert(GeoEntry(place, slot)) }

  /// Removes a record from the place where it was inserted.
  ///
  /// - Returns: False if it was not there.
  @discardableResult mutating func remove(_ key: RecordKey, at place: GeoCoordinate) -> Bool {
    let key = GeoEntry.key(place, key)
    // A cell holds several places. An entry at another one is that of another state of the record, and `sweep` removes it.
    guard tree.find(key)?.place == place else { return false }
    return tree.remove(key) != nil
  }

  /// Removes a record from any place, for a type that decodes to another place each time.
  ///
  /// Cost: reads every entry.
  mutating func sweep(_ key: RecordKey) {
    // Collected first: a removal would change the tree that is being read.
    var left: [GeoEntry] = []
    tree.forEachLeaf { leaf in left += leaf.filter { $0.slot.key == key } }
    for entry in left { tree.remove(entry.key) }
  }
}

extension GeoIndex {
  /// Visits the records in a box in no particular order, until `visit` returns `false`.
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

  /// Estimates the number of records in a box, from some hundred nodes at most.
  func estimate(_ box: BoundingBox) -> Int {
    guard let ranges = GeoRanges(box) else { return 0 }
    return estimate { ranges.overlaps($0) ? ranges.share(of: $0) : 0 }
  }

  /// Estimates the number of records within a distance in metres, from some hundred nodes at most.
  func estimate(latitude: Double, longitude: Double, within meters: Double) -> Int {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude), meters >= 0 else { return 0 }
    let (point, limit) = (SpherePoint(center), GreatCircle.mostSquaredChord(within: meters))
    return estimate { area in
      let (least, most) = (area.leastSquaredChord(to: point), area.mostSquaredChord(to: point))
      if least > limit { return 0 }
      // The share of the squared chord is the share of the surface. At least 1 %, because the box reaches into the circle.
      return most <= limit ? 1 : max(0.01, (limit - least) / (most - least))
    }
  }

  /// Sums the counts of nodes by the share of their area that matches, and descends only into nodes that match in part.
  private func estimate(_ share: (GeoArea) -> Double) -> Int {
    var level = [tree.root]
    var sum = 0.0
    // Planning must stay cheap, so the number of nodes that are read is bounded.
    var budget = 256
    while !level.isEmpty {
      var next: [PersistentTreeNode<GeoEntry>] = []
      for case .inner(let children) in level {
        budget -= children.count
        for child in children {
          let part = share(child.summary)
          // Leaves are not opened: planning needs an estimate, not a count.
          if part > 0, part < 1, budget > 0, !child.node.isLeaf {
            next.append(child.node)
          } else {
            sum += part * Double(child.count)
          }
        }
      }
      // A tree of one leaf has no summaries to estimate by, and is small enough to count.
      if case .leaf(let entries) = tree.root { sum += entries.reduce(0) { $0 + share(GeoArea($1)) } }
      level = next
    }
    // Rounded up: an estimate of 0 would rank the plan as free.
    return Int(sum.rounded(.up))
  }
}

extension GeoIndex {
  /// Visits the records by their distance in metres, nearest first, until `visit` returns `false`.
  ///
  /// Equal distances are ordered by id.
  ///
  /// The search is best-first: it expands the nearest node next, so the ten nearest of many records cost little. Records farther than
  /// `meters` are not visited, records at exactly that distance are. A centre that is not a valid place has no records near it.
  func nearest(
    to latitude: Double, _ longitude: Double, within meters: Double? = nil,
    _ visit: (RecordSlot, _ meters: Double) -> Bool
  ) {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude) else { return }
    let limit = meters ?? .infinity
    // NaN compares false here, so it is near nothing, too.
    guard limit >= 0 else { return }
    let point = SpherePoint(center)
    let chordLimit = GreatCircle.mostSquaredChord(within: limit)
    // `open` is ordered by a lower bound of the distance, `measured` by the true distance.
    var open = Heap<Candidate>()
    var measured = Heap<Neighbour>()
    open.insert(Candidate(squaredChord: 0, content: .node(tree.root)))
    while let candidate = open.popMin() {
      let least = GreatCircle.leastDistance(squaredChord: candidate.squaredChord)
      // No node or entry in `open` can be nearer than `least`, so these are final.
      while let first = measured.min, first.meters < least {
        measured.removeMin()
        guard visit(first.slot, first.meters) else { return }
      }
      switch candidate.content {
      case .node(.inner(let children)):
        for child in children {
          let chord = child.summary.leastSquaredChord(to: point)
          if chord <= chordLimit { open.insert(Candidate(squaredChord: chord, content: .node(child.node))) }
        }
      case .node(.leaf(let entries)):
        for entry in entries {
          let chord = entry.point.squaredChord(to: point)
          if chord <= chordLimit { open.insert(Candidate(squaredChord: chord, content: .entry(entry.place, entry.slot))) }
        }
      case .entry(let place, let slot):
        // Measured only when its turn comes: the formula takes six trigonometric functions and `atan2`.
        let distance = GreatCircle.distance(center, place)
        if distance <= limit { measured.insert(Neighbour(meters: distance, slot: slot, keys: keys)) }
      }
    }
    // `open` is empty now, so all measured records are final.
    while let first = measured.popMin() {
      guard visit(first.slot, first.meters) else { return }
    }
  }
}

/// A node, or an entry whose distance was not measured yet.
private struct Candidate: Comparable {
  enum Content {
    case node(PersistentTreeNode<GeoEntry>)
    case entry(GeoCoordinate, RecordSlot)
  }

  let squaredChord: Double
  let content: Content

  static func < (left: Candidate, right: Candidate) -> Bool { left.squaredChord < right.squaredChord }
  static func == (left: Candidate, right: Candidate) -> Bool { left.squaredChord == right.squaredChord }
}

/// An entry with its measured distance.
private struct Neighbour: Comparable {
  let meters: Double
  let slot: RecordSlot
  let keys: KeyOrder

  static func < (left: Neighbour, right: Neighbour) -> Bool {
    left.meters == right.meters ? left.keys.isBefore(left.slot.key, right.slot.key) : left.meters < right.meters
  }
  static func == (left: Neighbour, right: Neighbour) -> Bool { left.meters == right.meters && left.slot.key == right.slot.key }
}

/// The extent of the places below a node: the box around their points in space, and their ranges on the map.
struct GeoArea: TreeSummary {
  private(set) var low: SpherePoint
  private(set) var high: SpherePoint
  private(set) var south: Double
  private(set) var north: Double
  private(set) var west: Double
  private(set) var east: Double

  init(_ entry: GeoEntry) {
    (low, high) = (entry.point, entry.point)
    (south, north) = (entry.place.latitude, entry.place.latitude)
    // A pole is on every meridian, so a box at any longitude must reach it.
    let isPole = abs(entry.place.latitude) == 90
    (west, east) = isPole ? (-180, 180) : (entry.place.longitude, entry.place.longitude)
  }

  mutating func formUnion(_ other: GeoArea) {
    (low.x, low.y, low.z) = (min(low.x, other.low.x), min(low.y, other.low.y), min(low.z, other.low.z))
    (high.x, high.y, high.z) = (max(high.x, other.high.x), max(high.y, other.high.y), max(high.z, other.high.z))
    (south, north) = (min(south, other.south), max(north, other.north))
    (west, east) = (min(west, other.west), max(east, other.east))
  }

  /// Returns the squared chord from a point to the nearest point of the box.
  func leastSquaredChord(to point: SpherePoint) -> Double {
    let dx = max(low.x - point.x, 0, point.x - high.x)
    let dy = max(low.y - point.y, 0, point.y - high.y)
    let dz = max(low.z - point.z, 0, point.z - high.z)
    return dx * dx + dy * dy + dz * dz
  }

  /// Returns the squared chord from a point to the farthest corner of the box.
  func mostSquaredChord(to point: SpherePoint) -> Double {
    let dx = max(point.x - low.x, high.x - point.x)
    let dy = max(point.y - low.y, high.y - point.y)
    let dz = max(point.z - low.z, high.z - point.z)
    return dx * dx + dy * dy + dz * dz
  }
}

/// A record in a geographic index, with its place as degrees and as a point on the unit sphere.
struct GeoEntry: TreeEntry {
  typealias Summary = GeoArea

  let cell: UInt64
  let place: GeoCoordinate
  let point: SpherePoint
  let slot: RecordSlot

  init(_ place: GeoCoordinate, _ slot: RecordSlot) {
    self.place = place
    self.slot = slot
    point = SpherePoint(place)
    cell = Self.cell(point)
  }

  var key: GeoKey { GeoKey(cell: cell, key: slot.key) }
  // Small leaves, because copying a leaf retains each record in it.
  static var leafCapacity: Int { 24 }
  static func digest(_ key: GeoKey) -> UInt64 { key.cell }
  // Several records can share a cell.
  static var isDigestExact: Bool { false }

  /// Returns the tree key of a record at a place.
  static func key(_ place: GeoCoordinate, _ key: RecordKey) -> GeoKey { GeoKey(cell: cell(SpherePoint(place)), key: key) }

  /// Returns the cell of a point on a space-filling curve.
  ///
  /// Places with close cells are near each other.
  ///
  /// The cell interleaves the bits of the three coordinates (G. M. Morton, 1966), 21 of each. A cell is about six metres wide.
  private static func cell(_ point: SpherePoint) -> UInt64 {
    spread(point.x) | spread(point.y) << 1 | spread(point.z) << 2
  }

  /// Returns the 21 bits of a coordinate, with two zeros between each and the next.
  private static func spread(_ coordinate: Double) -> UInt64 {
    // Clamped: rounding may put a coordinate slightly outside -1 to 1, and a negative number would trap.
    var bits = UInt64(max(0, min(0x1F_FFFF, (coordinate + 1) * 0x10_0000)))
    bits = (bits | bits << 32) & 0x001F_0000_0000_FFFF
    bits = (bits | bits << 16) & 0x001F_0000_FF00_00FF
    bits = (bits | bits << 8) & 0x100F_00F0_0F00_F00F
    bits = (bits | bits << 4) & 0x10C3_0C30_C30C_30C3
    return (bits | bits << 2) & 0x1249_2492_4924_9249
  }
}

/// The sort key of an entry: its cell on the curve, then its record's key.
struct GeoKey: Comparable, Sendable {
  let cell: UInt64
  let key: RecordKey

  static func < (left: GeoKey, right: GeoKey) -> Bool {
    left.cell == right.cell ? left.key < right.key : left.cell < right.cell
  }
}
