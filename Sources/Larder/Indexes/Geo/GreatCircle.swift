// Geo/ holds geography: distances, boxes, and the index that finds the nearest records.
// Invariant: every distance that leaves this folder comes from GreatCircle.distance, so an index and a scan of all records yield the same
// distances.
// Called by IndexSet, the query planner and RecordMatcher, and by apps through the public types.
internal import Foundation

/// A valid place: a latitude of -90 to 90, and a longitude of at least -180 and less than 180.
struct GeoCoordinate: Hashable, Sendable {
  let latitude: Double
  let longitude: Double

  /// Creates a place from degrees and wraps its longitude, or returns `nil` for NaN, infinity or a latitude beyond ±90.
  init?(latitude: Double, longitude: Double) {
    // A latitude of NaN or infinity fails the comparison `abs(latitude) <= 90`, so `isFinite` is tested for the longitude only.
    guard abs(latitude) <= 90, longitude.isFinite else { return nil }
    self.latitude = latitude
    self.longitude = Self.wrapped(longitude)
  }

  /// Returns the longitude of the same meridian in -180 ..< 180, without rounding.
  static func wrapped(_ longitude: Double) -> Double {
    if longitude >= -180, longitude < 180 { return longitude }
    let turned = longitude.truncatingRemainder(dividingBy: 360)
    return turned >= 180 ? turned - 360 : turned < -180 ? turned + 360 : turned
  }
}

/// Great-circle distances on a sphere of the Earth's mean radius.
enum GreatCircle {
  /// Mean radius R₁ of the Earth in metres.
  ///
  /// The radius is the mean `(2a + b) / 3` of the Earth's axes 6 378 137 and 6 356 752.3141 (H. Moritz, "Geodetic Reference System 1980",
  /// Journal of Geodesy 74, 2000).
  static let earthRadius = 6_371_008.8

  /// Returns the great-circle distance between two places in metres.
  ///
  /// The function uses the haversine formula (R. W. Sinnott, "Virtues of the Haversine", Sky & Telescope 68, 1984). For places near each
  /// other's antipode the haversine `h` is close to 1, and an angle computed from `h` alone is inexact. To stay exact near the antipode,
  /// the function computes `1 - h` separately, as a sum of terms that are not negative. The angle is twice the `atan2` of the square roots
  /// of `h` and `1 - h`.
  static func distance(_ a: GeoCoordinate, _ b: GeoCoordinate) -> Double {
    // With `remainder`, the longitudes 179 and -179 degrees differ by 2 degrees. Without `remainder`, the longitudes 179 and -179 would
    // differ by 358 degrees.
    let halfTurn = radians((b.longitude - a.longitude).remainder(dividingBy: 360)) / 2
    let product = cos(radians(a.latitude)) * cos(radians(b.latitude))
    let (sinLatitude, sinSum) = (sin(radians(b.latitude - a.latitude) / 2), sin(radians(a.latitude + b.latitude) / 2))
    let (sinTurn, cosTurn) = (sin(halfTurn), cos(halfTurn))
    let haversine = sinLatitude * sinLatitude + product * sinTurn * sinTurn
    let rest = sinSum * sinSum + product * cosTurn * cosTurn
    return 2 * earthRadius * atan2(haversine.squareRoot(), rest.squareRoot())
  }

  static func radians(_ degrees: Double) -> Double { degrees * (.pi / 180) }

  /// Returns a lower bound, in metres, of the distance between two places with a given squared chord.
  ///
  /// The chord is the straight line between the places' points on the unit sphere. The lower bound only serves to skip tree nodes and
  /// entries that are too far away. The margin of the bound covers the rounding errors of the chord and of ``distance(_:_:)``.
  static func leastDistance(squaredChord: Double) -> Double {
    let chord = squaredChord.squareRoot() * (1 - 1e-12) - 1e-13
    return chord <= 0 ? 0 : 2 * earthRadius * asin(min(1, chord / 2)) * (1 - 1e-12)
  }

  /// Returns an upper bound of the squared chord between two places that are at most `meters` apart, with a margin for rounding errors.
  static func mostSquaredChord(within meters: Double) -> Double {
    let angle = meters / earthRadius / 2
    // No two places are more than half the Earth's circumference apart, so a greater limit excludes no place. For distances beyond half the
    // circumference the sine decreases, and a chord computed from the sine would wrongly exclude places.
    guard angle < .pi / 2 else { return .infinity }
    let chord = 2 * sin(angle) * (1 + 1e-12) + 1e-12
    return chord * chord
  }
}

/// A place as a point on the unit sphere, or a corner of a box in space.
///
/// Distances between points in space need no special case for the poles and the date line, unlike differences of longitudes.
struct SpherePoint: Sendable {
  var x: Double
  var y: Double
  var z: Double

  init(_ place: GeoCoordinate) {
    let (latitude, longitude) = (GreatCircle.radians(place.latitude), GreatCircle.radians(place.longitude))
    x = cos(latitude) * cos(longitude)
    y = cos(latitude) * sin(longitude)
    z = sin(latitude)
  }

  func squaredChord(to other: SpherePoint) -> Double {
    let (dx, dy, dz) = (x - other.x, y - other.y, z - other.z)
    return dx * dx + dy * dy + dz * dz
  }
}

/// A box on the map, in degrees, to pass to `within` of a query.
///
/// A box whose west is greater than its east crosses the date line: a box from 170 to -170 is 20 degrees wide. Longitudes beyond ±180
/// wrap, so a box from 170 to 190 is the same as a box from 170 to -170. A box that is 360 or more degrees wide holds every longitude. If a
/// side is not finite, or south is greater than north, the box holds no place.
public struct BoundingBox: Hashable, Codable, Sendable {
  /// Least latitude of the box.
  public var south: Double
  /// Meridian where the box begins, from which it extends to the east.
  public var west: Double
  /// Greatest latitude of the box.
  public var north: Double
  /// Meridian where the box ends, to the east of ``west``.
  public var east: Double

  /// Creates a box from its four sides.
  public init(south: Double, west: Double, north: Double, east: Double) {
    (self.south, self.west, self.north, self.east) = (south, west, north, east)
  }

  /// Returns true if a place is in the box or on its boundary.
  ///
  /// The longitudes -180 and 180 are the same meridian. All meridians meet at a pole, so only the latitude of a pole is compared with the
  /// box. A place that is not valid (NaN, infinity, a latitude beyond ±90) is in no box.
  public func contains(latitude: Double, longitude: Double) -> Bool {
    guard let place = GeoCoordinate(latitude: latitude, longitude: longitude), let ranges = GeoRanges(self) else { return false }
    return ranges.contains(place)
  }
}

/// A ``BoundingBox`` as one range of latitudes and one or two ranges of longitudes, none of which crosses the date line.
struct GeoRanges: Sendable {
  let south: Double
  let north: Double
  let longitudes: [ClosedRange<Double>]

  init?(_ box: BoundingBox) {
    guard box.south.isFinite, box.north.isFinite, box.west.isFinite, box.east.isFinite, box.south <= box.north else { return nil }
    (south, north) = (box.south, box.north)
    let (west, east) = (GeoCoordinate.wrapped(box.west), GeoCoordinate.wrapped(box.east))
    // The width is computed from the unwrapped sides, because a box around the whole globe has equal sides after wrapping.
    longitudes = box.east - box.west >= 360 ? [-180...180] : west <= east ? [west...east] : [west...180, -180...east]
  }

  func contains(_ place: GeoCoordinate) -> Bool {
    guard place.latitude >= south, place.latitude <= north else { return false }
    // All meridians meet at a pole, so a place at a pole is in the box with any longitude.
    return abs(place.latitude) == 90 || longitudes.contains { $0.contains(place.longitude) }
  }

  func overlaps(_ area: GeoArea) -> Bool {
    area.north >= south && area.south <= north && longitudes.contains { $0.overlaps(area.west...area.east) }
  }

  /// Returns the fraction of an area that is in the box, from 0 to 1, where degrees of latitude and longitude measure the areas.
  func share(of area: GeoArea) -> Double {
    let height = share(area.south...area.north, of: south...north)
    return height * min(1, longitudes.reduce(0) { $0 + share(area.west...area.east, of: $1) })
  }

  private func share(_ part: ClosedRange<Double>, of whole: ClosedRange<Double>) -> Double {
    guard part.overlaps(whole) else { return 0 }
    let common = part.clamped(to: whole)
    let length = part.upperBound - part.lowerBound
    // The range of an area around one point has the length 0, and a division by this length would return NaN.
    return length > 0 ? (common.upperBound - common.lowerBound) / length : 1
  }
}
