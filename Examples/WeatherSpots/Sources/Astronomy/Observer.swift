import Foundation

/// A point of view at sea level; the Earth is the ellipsoid of WGS 84.
struct Observer {
  private let place: SIMD3<Double>
  private let zenith: SIMD3<Double>
  private let longitude: Double

  /// Places an observer, in degrees north and east.
  init(latitude: Double, longitude: Double) {
    let (latitude, longitude) = (latitude.radians, longitude.radians)
    let (equatorial, flattening) = (6378.137, 1 / 298.257_223_563)
    let squeeze = (1 - flattening) * (1 - flattening)
    let (c, s) = (cos(latitude), sin(latitude))
    let curvature = equatorial / (c * c + squeeze * s * s).squareRoot()
    zenith = SIMD3(c * cos(longitude), c * sin(longitude), s)
    place = SIMD3(curvature * zenith.x, curvature * zenith.y, curvature * squeeze * s)
    self.longitude = longitude
  }

  /// Returns the altitude and distance of a body, in degrees and kilometres, with parallax and without refraction.
  func altitude(of body: SIMD3<Double>) -> (degrees: Double, kilometers: Double) {
    let line = body - place
    let distance = line.length
    return (asin(min(1, max(-1, (line * zenith).sum() / distance))).degrees, distance)
  }

  /// Returns the angle by which a body is past the upper meridian, in degrees, -180 ..< 180.
  ///
  /// Parallax does not change when it is 0 or 180.
  func hourAngle(of body: SIMD3<Double>) -> Double {
    (longitude.degrees - atan2(body.y, body.x).degrees + 180).turned - 180
  }
}
