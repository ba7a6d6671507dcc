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
