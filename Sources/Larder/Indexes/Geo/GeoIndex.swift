internal import HeapModule

/// A geographic index, which finds the records nearest to a place and the records in a box.
///
/// A copy of the index costs O(1). An insertion or removal costs O(log n).
struct GeoIndex: Sendable {
  private(set) var tree: PersistentTree<GeoEntry>
  /// Order of record keys, which decides between records at equal distance.
  let keys: KeyOrder

  /// Creates the index of many records in O(n log n).
  ///
  /// The keys of the records must all be different.
  init(_ entries: [(GeoCoordinate, RecordSlot)] = [], keys: KeyOrder = .bytes) {
    self.keys = keys
    tree = PersistentTree(sorted: entries.map { GeoEntry($0, $1) }.sorted { $0.key < $1.key })
  }

  /// Creates the index by merging lists of entries, each of which is sorted by cell and then by record key.
  init(sorted parts: [[GeoEntry]], keys: KeyOrder) {
    self.keys = keys
    tree = PersistentTree(
      sorted: parts.reduce([]) { all, part in
        all.isEmpty ? part : all.merged(with: part) { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell }
      })
  }

  var count: Int { tree.count }

  /// Inserts a record, or replaces the record's entry if the entry lies in the same cell of the space-filling curve.
  ///
  /// ``GeoEntry`` computes the cell of a place.
  mutating func insert(_ slot: RecordSlot, at place: GeoCoordinate) { tree.insert(GeoEntry(place, slot)) }

  /// Removes a record from the place where it was inserted.
  ///
  /// - Returns: False if the index does not hold the record at this place.
  @discardableResult mutating func remove(_ key: RecordKey, at place: GeoCoordinate) -> Bool {
    let key = GeoEntry.key(place, key)
    // A cell of the space-filling curve covers several places. If the found entry has another place, the record decoded to the other place
    // when it was inserted. If `remove` returns `false`, the caller removes the entry with `sweep`.
    guard tree.find(key)?.place == place else { return false }
    return tree.remove(key) != nil
  }

  /// Removes all entries of a record by its key, for a type that decodes the same bytes to another place each time.
  ///
  /// Cost: reads every entry of the index.
  mutating func sweep(_ key: RecordKey) {
    // The entries are collected before the first removal, because a removal changes the tree that the loop reads.
    var left: [GeoEntry] = []
    tree.forEachLeaf { leaf in left += leaf.filter { $0.slot.key == key } }
    for entry in left { tree.remove(entry.key) }
  }
}

extension GeoIndex {
  /// Visits the records in a box in an unspecified order, until `visit` returns `false`.
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

  /// Estimates the number of records in a box by reading at most a few hundred tree nodes.
  func estimate(_ box: BoundingBox) -> Int {
    guard let ranges = GeoRanges(box) else { return 0 }
    return estimate { ranges.overlaps($0) ? ranges.share(of: $0) : 0 }
  }

  /// Estimates the number of records within a distance in metres by reading at most a few hundred tree nodes.
  func estimate(latitude: Double, longitude: Double, within meters: Double) -> Int {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude), meters >= 0 else { return 0 }
    let (point, limit) = (SpherePoint(center), GreatCircle.mostSquaredChord(within: meters))
    return estimate { area in
      let (least, most) = (area.leastSquaredChord(to: point), area.mostSquaredChord(to: point))
      if least > limit { return 0 }
      // The surface of a spherical cap grows in proportion to its squared chord, so a fraction of the squared chords estimates the same
      // fraction of the surface. The fraction is at least 1 %, because a box that reaches into the circle may hold matching records.
      return most <= limit ? 1 : max(0.01, (limit - least) / (most - least))
    }
  }

  /// Sums the record counts of tree nodes, each multiplied by the fraction of the node's area that matches the query.
  ///
  /// The estimate reads the children only of nodes whose area matches in part.
  private func estimate(_ share: (GeoArea) -> Double) -> Int {
    var level = [tree.root]
    var sum = 0.0
    // The budget bounds the number of nodes that the estimate reads, so that planning a query stays cheap in a large index.
    var budget = 256
    while !level.isEmpty {
      var next: [PersistentTreeNode<GeoEntry>] = []
      for case .inner(let children) in level {
        budget -= children.count
        for child in children {
          let part = share(child.summary)
          // The estimate does not read the entries of leaves, because the query planner needs no exact count.
          if part > 0, part < 1, budget > 0, !child.node.isLeaf {
            next.append(child.node)
          } else {
            sum += part * Double(child.count)
          }
        }
      }
      // A tree of one leaf has no inner nodes with summaries, so the estimate tests its few entries one by one.
      if case .leaf(let entries) = tree.root { sum += entries.reduce(0) { $0 + share(GeoArea($1)) } }
      level = next
    }
    // The sum is rounded up, because the planner would rank a plan with an estimate of 0 records as free.
    return Int(sum.rounded(.up))
  }
}

extension GeoIndex {
  /// Visits the records by their distance in metres, nearest first, until `visit` returns `false`.
  ///
  /// Records at equal distance are visited in the order of their ids.
  ///
  /// The search for the nearest records is best-first: it expands the nearest tree node next, so finding the ten nearest of many records
  /// reads few tree nodes. A record at exactly the distance `meters` is visited, and a record farther away is not visited. If the centre is
  /// not a valid place, no record is visited.
  func nearest(
    to latitude: Double, _ longitude: Double, within meters: Double? = nil,
    _ visit: (RecordSlot, _ meters: Double) -> Bool
  ) {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude) else { return }
    let limit = meters ?? .infinity
    // A limit of NaN fails the comparison `limit >= 0`, so a search within NaN metres visits no record.
    guard limit >= 0 else { return }
    let point = SpherePoint(center)
    let chordLimit = GreatCircle.mostSquaredChord(within: limit)
    // The heap `open` is ordered by a lower bound of the distance, the heap `measured` by the exact distance.
    var open = Heap<Candidate>()
    var measured = Heap<Neighbour>()
    open.insert(Candidate(squaredChord: 0, content: .node(tree.root)))
    while let candidate = open.popMin() {
      let least = GreatCircle.leastDistance(squaredChord: candidate.squaredChord)
      // No node or entry in the heap `open` can be nearer than `least`, so records with a computed distance below `least` can be visited.
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
        // The exact distance is computed when the entry leaves `open`, because the computation takes six trigonometric functions and
        // `atan2`. A search that ends early never computes the exact distance of the entries left in `open`.
        let distance = GreatCircle.distance(center, place)
        if distance <= limit { measured.insert(Neighbour(meters: distance, slot: slot, keys: keys)) }
      }
    }
    // After the loop the heap `open` is empty, so no record without a computed distance can be nearer than the records in `measured`.
    while let first = measured.popMin() {
      guard visit(first.slot, first.meters) else { return }
    }
  }
}

/// A tree node, or an entry whose exact distance is not computed yet, in the search for the nearest records.
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

/// A record with its computed distance from the centre of the search for the nearest records.
private struct Neighbour: Comparable {
  let meters: Double
  let slot: RecordSlot
  let keys: KeyOrder

  static func < (left: Neighbour, right: Neighbour) -> Bool {
    left.meters == right.meters ? left.keys.isBefore(left.slot.key, right.slot.key) : left.meters < right.meters
  }
  static func == (left: Neighbour, right: Neighbour) -> Bool { left.meters == right.meters && left.slot.key == right.slot.key }
}

/// The extent of the places below a tree node: a box around their points in space, and their ranges of latitude and longitude.
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
    // A pole is on every meridian. With the full range of longitudes, a search in a box at any longitude finds the record at the pole.
    let isPole = abs(entry.place.latitude) == 90
    (west, east) = isPole ? (-180, 180) : (entry.place.longitude, entry.place.longitude)
  }

  mutating func formUnion(_ other: GeoArea) {
    (low.x, low.y, low.z) = (min(low.x, other.low.x), min(low.y, other.low.y), min(low.z, other.low.z))
    (high.x, high.y, high.z) = (max(high.x, other.high.x), max(high.y, other.high.y), max(high.z, other.high.z))
    (south, north) = (min(south, other.south), max(north, other.north))
    (west, east) = (min(west, other.west), max(east, other.east))
  }

  /// Returns the squared chord (straight-line distance) from a point to the nearest point of the box in space.
  func leastSquaredChord(to point: SpherePoint) -> Double {
    let dx = max(low.x - point.x, 0, point.x - high.x)
    let dy = max(low.y - point.y, 0, point.y - high.y)
    let dz = max(low.z - point.z, 0, point.z - high.z)
    return dx * dx + dy * dy + dz * dz
  }

  /// Returns the squared chord (straight-line distance) from a point to the farthest corner of the box in space.
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
  // Leaves are small, because an edit that copies a leaf retains each record in the leaf.
  static var leafCapacity: Int { 24 }
  static func digest(_ key: GeoKey) -> UInt64 { key.cell }
  // The digest of a key is its cell. Several records can share a cell, so equal digests do not imply equal keys.
  static var isDigestExact: Bool { false }

  /// Returns the sort key in the tree for a record at a place.
  static func key(_ place: GeoCoordinate, _ key: RecordKey) -> GeoKey { GeoKey(cell: cell(SpherePoint(place)), key: key) }

  /// Returns the number of the cell in space that holds a point, along a space-filling curve.
  ///
  /// The index sorts entries by cell, so that the entries of a tree leaf are near each other.
  ///
  /// The cell number interleaves the bits of the three coordinates, 21 bits of each (G. M. Morton, 1966). A cell is about six metres wide.
  private static func cell(_ point: SpherePoint) -> UInt64 {
    spread(point.x) | spread(point.y) << 1 | spread(point.z) << 2
  }

  /// Returns a coordinate as 21 bits, with two zero bits between each bit and the next.
  private static func spread(_ coordinate: Double) -> UInt64 {
    // Rounding may put a coordinate slightly outside -1 to 1. Without the clamp, a negative number would trap in the conversion to
    // `UInt64`.
    var bits = UInt64(max(0, min(0x1F_FFFF, (coordinate + 1) * 0x10_0000)))
    bits = (bits | bits << 32) & 0x001F_0000_0000_FFFF
    bits = (bits | bits << 16) & 0x001F_0000_FF00_00FF
    bits = (bits | bits << 8) & 0x100F_00F0_0F00_F00F
    bits = (bits | bits << 4) & 0x10C3_0C30_C30C_30C3
    return (bits | bits << 2) & 0x1249_2492_4924_9249
  }
}

/// The sort key of an entry in a geographic index: its cell on the space-filling curve, then its record's key.
struct GeoKey: Comparable, Sendable {
  let cell: UInt64
  let key: RecordKey

  static func < (left: GeoKey, right: GeoKey) -> Bool {
    left.cell == right.cell ? left.key < right.key : left.cell < right.cell
  }
}
