/// The extent of the places below a node of the index: the box around their points in space, and their ranges on the map.
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
    let isPole = abs(entry.place.latitude) == 90
    (west, east) = isPole ? (-180, 180) : (entry.place.longitude, entry.place.longitude)
  }

  mutating func formUnion(_ other: GeoArea) {
    (low.x, low.y, low.z) = (min(low.x, other.low.x), min(low.y, other.low.y), min(low.z, other.low.z))
    (high.x, high.y, high.z) = (max(high.x, other.high.x), max(high.y, other.high.y), max(high.z, other.high.z))
    (south, north) = (min(south, other.south), max(north, other.north))
    (west, east) = (min(west, other.west), max(east, other.east))
  }

  /// Returns the square of the distance in space to the nearest point of the box.
  func leastSquaredChord(to point: SpherePoint) -> Double {
    let dx = max(low.x - point.x, 0, point.x - high.x)
    let dy = max(low.y - point.y, 0, point.y - high.y)
    let dz = max(low.z - point.z, 0, point.z - high.z)
    return dx * dx + dy * dy + dz * dz
  }

  /// Returns the square of the distance in space to the farthest corner of the box.
  func mostSquaredChord(to point: SpherePoint) -> Double {
    let dx = max(point.x - low.x, high.x - point.x)
    let dy = max(point.y - low.y, high.y - point.y)
    let dz = max(point.z - low.z, high.z - point.z)
    return dx * dx + dy * dy + dz * dz
  }
}

/// A record in the index, with its place as degrees and as a point.
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
  static var leafCapacity: Int { 24 }
  static func digest(_ key: GeoKey) -> UInt64 { key.cell }
  static var isDigestExact: Bool { false }

  /// Returns the key of an entry at a place.
  static func key(_ place: GeoCoordinate, _ key: RecordKey) -> GeoKey { GeoKey(cell: cell(SpherePoint(place)), key: key) }

  /// Returns the cell of a point on a curve that fills space, so that places with near cells are near each other.
  ///
  /// Interleaved bits of the three coordinates (G. M. Morton, 1966), 21 of each: a cell is about six metres wide.
  private static func cell(_ point: SpherePoint) -> UInt64 {
    spread(point.x) | spread(point.y) << 1 | spread(point.z) << 2
  }

  /// Returns the 21 bits of a coordinate, with two zeros between each and the next.
  private static func spread(_ coordinate: Double) -> UInt64 {
    var bits = UInt64(max(0, min(0x1F_FFFF, (coordinate + 1) * 0x10_0000)))
    bits = (bits | bits << 32) & 0x001F_0000_0000_FFFF
    bits = (bits | bits << 16) & 0x001F_0000_FF00_00FF
    bits = (bits | bits << 8) & 0x100F_00F0_0F00_F00F
    bits = (bits | bits << 4) & 0x10C3_0C30_C30C_30C3
    return (bits | bits << 2) & 0x1249_2492_4924_9249
  }
}

/// The order of the entries: along the curve, then by key.
struct GeoKey: Comparable, Sendable {
  let cell: UInt64
  let key: RecordKey

  static func < (left: GeoKey, right: GeoKey) -> Bool {
    left.cell == right.cell ? left.key < right.key : left.cell < right.cell
  }
}
