internal import HeapModule

extension GeoIndex {
  /// Visits the records by their distance in metres, nearest first, records at the same distance by id, until `visit` returns false.
  ///
  /// Only what is visited is found: the search goes through the tree best first, so the first ten of many cost little. Records farther
  /// than `meters` are not visited, those at exactly that distance are. A centre that is no place is near nothing.
  func nearest(
    to latitude: Double, _ longitude: Double, within meters: Double? = nil,
    _ visit: (RecordSlot, _ meters: Double) -> Bool
  ) {
    guard let center = GeoCoordinate(latitude: latitude, longitude: longitude) else { return }
    let limit = meters ?? .infinity
    guard limit >= 0 else { return }
    let point = SpherePoint(center)
    let chordLimit = GreatCircle.mostSquaredChord(within: limit)
    // What was not looked at closely is ordered by a distance in space that it cannot be nearer than; what was, by its true distance.
    var open = Heap<Candidate>()
    var measured = Heap<Neighbour>()
    open.insert(Candidate(squaredChord: 0, content: .node(tree.root)))
    while let candidate = open.popMin() {
      let least = GreatCircle.leastDistance(squaredChord: candidate.squaredChord)
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
        let distance = GreatCircle.distance(center, place)
        if distance <= limit { measured.insert(Neighbour(meters: distance, slot: slot, keys: keys)) }
      }
    }
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

/// An entry with its distance.
private struct Neighbour: Comparable {
  let meters: Double
  let slot: RecordSlot
  let keys: KeyOrder

  static func < (left: Neighbour, right: Neighbour) -> Bool {
    left.meters == right.meters ? left.keys.isBefore(left.slot.key, right.slot.key) : left.meters < right.meters
  }
  static func == (left: Neighbour, right: Neighbour) -> Bool { left.meters == right.meters && left.slot.key == right.slot.key }
}
