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
