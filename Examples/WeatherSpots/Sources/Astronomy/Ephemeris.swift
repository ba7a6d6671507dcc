import Foundation

/// Geocentric positions of Sun and Moon for one day, interpolated from eleven computed instants.
///
/// The theories cost hundreds of sines for each instant, so they are evaluated at eleven instants only. Between those, a polynomial
/// is exact to a thousandth of a second of arc.
struct Ephemeris {
  private let middle: Double
  private let halfLength: Double
  private let positions: [Double]
  private let sun: [SIMD3<Double>]
  private let moon: [SIMD3<Double>]

  /// Evaluates the theories between two instants in seconds since 1970 UTC, at most some 29 hours apart.
  init(from start: Double, to end: Double) {
    let count = 11
    let (middle, halfLength) = ((start + end) / 2, (end - start) / 2)
    self.middle = middle
    self.halfLength = halfLength
    // Chebyshev points. Equally spaced points would make the polynomial oscillate near both ends of the day.
    positions = (0..<count).map { cos(Double($0) * .pi / Double(count - 1)) }
    // Vectors and not angles: right ascension jumps from 360 to 0 degrees, which a polynomial cannot follow.
    let places = positions.map { position in Self.places(unix: middle + halfLength * position) }
    sun = places.map(\.sun)
    moon = places.map(\.moon)
  }

  /// Returns the apparent positions as vectors in kilometres, with the x axis toward the origin of mean sidereal time.
  private static func places(unix seconds: Double) -> (sun: SIMD3<Double>, moon: SIMD3<Double>) {
    let time = AstronomicalTime(unix: seconds)
    let nutation = Nutation(time)
    // The equation of the equinoxes is put into the positions. The Earth's rotation then needs only mean sidereal time, which is cheap.
    let equation = (nutation.longitude * cos(nutation.obliquity)).radians
    func place(_ position: EclipticPosition) -> SIMD3<Double> { position.equatorial(obliquity: nutation.obliquity).turned(by: equation) }
    return (place(.sun(time, nutation)), place(.moon(time, nutation)))
  }

  /// Returns the Sun in the Earth-fixed frame, in kilometres, with x toward Greenwich and z toward the north pole.
  func sunFixedToEarth(at seconds: Double) -> SIMD3<Double> { fixedToEarth(interpolated(sun, at: seconds), seconds) }

  /// Returns the Moon in the Earth-fixed frame, in kilometres, with x toward Greenwich and z toward the north pole.
  func moonFixedToEarth(at seconds: Double) -> SIMD3<Double> { fixedToEarth(interpolated(moon, at: seconds), seconds) }

  private func fixedToEarth(_ vector: SIMD3<Double>, _ seconds: Double) -> SIMD3<Double> {
    vector.turned(by: AstronomicalTime.meanSiderealTime(unix: seconds))
  }

  /// Returns the value of the polynomial through the values at the Chebyshev points, in barycentric form.
  private func interpolated(_ values: [SIMD3<Double>], at seconds: Double) -> SIMD3<Double> {
    let x = (seconds - middle) / halfLength
    var (numerator, denominator) = (SIMD3<Double>.zero, 0.0)
    for index in positions.indices {
      let distance = x - positions[index]
      // At a computed instant the weight would be a division by zero.
      guard distance != 0 else { return values[index] }
      let isEnd = index == 0 || index == positions.count - 1
      // Barycentric weights of these points: alternating signs, and one half at both ends.
      let weight = (index.isMultiple(of: 2) ? 1.0 : -1.0) * (isEnd ? 0.5 : 1) / distance
      numerator += weight * values[index]
      denominator += weight
    }
    return numerator / denominator
  }
}

extension SIMD3<Double> {
  /// Returns the vector in axes that are rotated by an angle in radians around z.
  func turned(by angle: Double) -> SIMD3<Double> {
    let (c, s) = (cos(angle), sin(angle))
    return SIMD3(x * c + y * s, y * c - x * s, z)
  }

  /// Length of the vector.
  var length: Double { (self * self).sum().squareRoot() }
}
