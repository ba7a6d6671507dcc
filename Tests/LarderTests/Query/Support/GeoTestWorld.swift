import Foundation

@testable import Larder

/// A record of which only the key matters.
func slot(_ key: String) -> RecordSlot { RecordSlot(key: RecordKey(key), revision: Revision(1), schemaVersion: 1, value: Data()) }

/// Records at places, as a plain list that is searched by looking at each.
struct GeoWorld {
  struct Spot {
    var place: GeoCoordinate
    var slot: RecordSlot
  }

  var spots: [Spot] = []
  var random: SeededGenerator

  init(_ count: Int, seed: UInt64) {
    random = SeededGenerator(seed)
    spots = (0..<count).map { number in Spot(place: randomPlace(), slot: slot("spot-\(number)")) }
  }

  var index: GeoIndex { GeoIndex(spots.map { ($0.place, $0.slot) }) }

  /// Anywhere on the sphere, or near a pole, the date line or a city, or a round coordinate that others have too.
  mutating func randomPlace() -> GeoCoordinate {
    let (latitude, longitude) =
      switch random.int(0..<10) {
      case 0: (90 - abs(small()), Double.random(in: -180...180, using: &random))
      case 1: (-90 + abs(small()), Double.random(in: -180...180, using: &random))
      case 2: (Double.random(in: -90...90, using: &random), 180 + small())
      case 3: (35.1 + small(), 139.6 + small())
      case 4: (Double(random.int(-9..<10)) * 10, Double(random.int(-18..<19)) * 10)
      default: (asin(Double.random(in: -1...1, using: &random)) * 180 / .pi, Double.random(in: -180...180, using: &random))
      }
    return GeoCoordinate(latitude: latitude, longitude: longitude) ?? GeoWorld.null
  }

  /// A few degrees or millionths of them.
  private mutating func small() -> Double {
    Double.random(in: -1...1, using: &random) * [3, 0.1, 1e-6, 0][random.int(0..<4)]
  }

  /// By distance, then by key.
  func nearest(to center: GeoCoordinate, within meters: Double = .infinity) -> [(key: String, meters: Double)] {
    spots.map { (key: $0.slot.key.text, meters: GreatCircle.distance(center, $0.place)) }
      .filter { $0.meters <= meters }
      .sorted { ($0.meters, RecordKey($0.key)) < ($1.meters, RecordKey($1.key)) }
  }

  func within(_ box: BoundingBox) -> [String] {
    spots.filter { box.contains(latitude: $0.place.latitude, longitude: $0.place.longitude) }.map(\.slot.key.text).sorted()
  }

  static var null: GeoCoordinate { GeoCoordinate(latitude: 0, longitude: 0).unsafelyUnwrapped }
}

extension GeoIndex {
  /// Inserts a record at a place, if it is one.
  mutating func insert(latitude: Double, longitude: Double, _ slot: RecordSlot) {
    if let place = GeoCoordinate(latitude: latitude, longitude: longitude) { insert(slot, at: place) }
  }

  /// Removes a record from a place, if it is one.
  @discardableResult mutating func remove(latitude: Double, longitude: Double, key: RecordKey) -> Bool {
    GeoCoordinate(latitude: latitude, longitude: longitude).map { remove(key, at: $0) } ?? false
  }

  func nearest(to center: GeoCoordinate, within meters: Double? = nil, limit: Int = .max) -> [(key: String, meters: Double)] {
    var found: [(key: String, meters: Double)] = []
    nearest(to: center.latitude, center.longitude, within: meters) { slot, distance in
      found.append((slot.key.text, distance))
      return found.count < limit
    }
    return found
  }

  func within(_ box: BoundingBox) -> [String] {
    var found: [String] = []
    forEach(in: box) { slot in
      found.append(slot.key.text)
      return true
    }
    return found.sorted()
  }
}
