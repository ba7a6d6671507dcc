import Foundation

/// An observer at sea level on the WGS 84 ellipsoid.
struct Observer {
  private let place: SIMD3<Double>
  private let zenith: SIMD3<Double>
  private let longitude: Double

  /// Creates an observer at a latitude and longitude, in degrees north and east.
  init(latitude: Double, longitude: Double) {
    let (latitude, longitude) = (latitude.radians, longitude.radians)
    let (equatorial, flattening) = (6378.137, 1 / 298.257_223_563)
    let squeeze = (1 - flattening) * (1 - flattening)
    let (c, s) = (cos(latitude), sin(latitude))
    let curvature = equatorial / (c * c + squeeze * s * s).squareRoot()
    // The normal of the ellipsoid, and not the direction from the centre: they differ by up to 0.19 degrees.
    zenith = SIMD3(c * cos(longitude), c * sin(longitude), s)
    place = SIMD3(curvature * zenith.x, curvature * zenith.y, curvature * squeeze * s)
    self.longitude = longitude
  }

  /// Returns the altitude in degrees and the distance in kilometres of a body, with parallax and without refraction.
  func altitude(of body: SIMD3<Double>) -> (degrees: Double, kilometers: Double) {
    // Measured from the observer and not from the centre: parallax moves the Moon by up to a degree.
    let line = body - place
    let distance = line.length
    // Rounding can push the sine past 1 at the zenith, for which `asin` returns NaN.
    return (asin(min(1, max(-1, (line * zenith).sum() / distance))).degrees, distance)
  }

  /// Returns the hour angle of a body, its angle past the upper meridian in degrees from -180 up to 180.
  ///
  /// Parallax does not change the instants at which the hour angle is 0 or 180.
  func hourAngle(of body: SIMD3<Double>) -> Double { (longitude.degrees - atan2(body.y, body.x).degrees + 180).turned - 180 }
}
