import Foundation

/// The geocentric places of Sun and Moon through one day.
///
/// The theories, hundreds of sines an instant, are asked at a few instants only; between them a polynomial through those is exact to a
/// thousandth of a second of arc.
struct Ephemeris {
  private let middle: Double
  private let halfLength: Double
  private let positions: [Double]
  private let sun: [SIMD3<Double>]
  private let moon: [SIMD3<Double>]

  /// Asks the theories from one instant to another, in seconds since 1970 UTC, some 25 hours apart.
  init(from start: Double, to end: Double) {
    let count = 11
    let (middle, halfLength) = ((start + end) / 2, (end - start) / 2)
    self.middle = middle
    self.halfLength = halfLength
    positions = (0..<count).map { cos(Double($0) * .pi / Double(count - 1)) }
    let places = positions.map { position in Self.places(unix: middle + halfLength * position) }
    sun = places.map(\.sun)
    moon = places.map(\.moon)
  }

  /// Returns the apparent places as vectors in kilometres whose x axis points to where mean sidereal time is counted from.
  private static func places(unix seconds: Double) -> (sun: SIMD3<Double>, moon: SIMD3<Double>) {
    let time = AstronomicalTime(unix: seconds)
    let nutation = Nutation(time)
    // The equation of the equinoxes goes into the places, so that the slow mean time may count the turning of the Earth.
    let equation = (nutation.longitude * cos(nutation.obliquity)).radians
    func place(_ position: EclipticPosition) -> SIMD3<Double> {
      position.equatorial(obliquity: nutation.obliquity).turned(by: equation)
    }
    return (place(.sun(time, nutation)), place(.moon(time, nutation)))
  }

  /// Both bodies in the frame that turns with the Earth: x toward Greenwich, z toward the north pole, in kilometres.
  func sunFixedToEarth(at seconds: Double) -> SIMD3<Double> { fixedToEarth(interpolated(sun, at: seconds), seconds) }

  /// Returns the Moon in the frame that turns with the Earth.
  func moonFixedToEarth(at seconds: Double) -> SIMD3<Double> { fixedToEarth(interpolated(moon, at: seconds), seconds) }

  private func fixedToEarth(_ vector: SIMD3<Double>, _ seconds: Double) -> SIMD3<Double> {
    vector.turned(by: AstronomicalTime.meanSiderealTime(unix: seconds))
  }

  /// Returns the polynomial through the values at Chebyshev's points, in its barycentric form.
  private func interpolated(_ values: [SIMD3<Double>], at seconds: Double) -> SIMD3<Double> {
    let x = (seconds - middle) / halfLength
    var (numerator, denominator) = (SIMD3<Double>.zero, 0.0)
    for index in positions.indices {
      let distance = x - positions[index]
      guard distance != 0 else { return values[index] }
      let isEnd = index == 0 || index == positions.count - 1
      let weight = (index.isMultiple(of: 2) ? 1.0 : -1.0) * (isEnd ? 0.5 : 1) / distance
      numerator += weight * values[index]
      denominator += weight
    }
    return numerator / denominator
  }
}

extension SIMD3<Double> {
  /// Returns the vector in axes that are turned by an angle around z.
  func turned(by angle: Double) -> SIMD3<Double> {
    let (c, s) = (cos(angle), sin(angle))
    return SIMD3(x * c + y * s, y * c - x * s, z)
  }

  /// The length.
  var length: Double { (self * self).sum().squareRoot() }
}
