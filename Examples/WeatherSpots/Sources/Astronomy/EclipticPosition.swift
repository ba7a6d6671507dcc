import Foundation

/// A geocentric position of a body, relative to the ecliptic and equinox of the date.
struct EclipticPosition {
  /// Apparent longitude, in degrees.
  let longitude: Double
  /// Latitude, in degrees.
  let latitude: Double
  /// Distance from the centre of the Earth, in kilometres.
  let kilometers: Double

  /// Astronomical unit, in kilometres.
  static let astronomicalUnit = 149_597_870.7

  /// Returns the position of the Sun, with aberration and nutation, within a second of arc (Meeus, chapter 25, higher accuracy).
  static func sun(_ time: AstronomicalTime, _ nutation: Nutation) -> EclipticPosition {
    let millennia = time.centuries / 10
    let distance = sum(SunSeries.distance, millennia)
    // The theory gives the Earth as seen from the Sun, hence 180 degrees. 0.09033 seconds of arc convert its frame to FK5, 20.4898 are
    // the aberration.
    let longitude = sum(SunSeries.longitude, millennia).degrees + 180 - (0.090_33 + 20.4898 / distance) / 3600
    return EclipticPosition(
      // Seen from the Earth, the Sun's latitude is the Earth's with the opposite sign.
      longitude: (longitude + nutation.longitude).turned, latitude: -sum(SunSeries.latitude, millennia).degrees,
      kilometers: distance * astronomicalUnit)
  }

  private static func sum(_ series: [[SunSeries.Term]], _ millennia: Double) -> Double {
    // The tables hold amplitudes in units of 1e-8, as Meeus prints them.
    var (total, power) = (0.0, 1e-8)
    for terms in series {
      total += power * terms.reduce(0) { $0 + $1.amplitude * cos($1.phase + $1.speed * millennia) }
      power *= millennia
    }
    return total
  }

  /// Returns the position of the Moon, with nutation, from all terms of Meeus, chapter 47.
  ///
  /// The error is at most 10 seconds of arc. The theory already includes the light time.
  static func moon(_ time: AstronomicalTime, _ nutation: Nutation) -> EclipticPosition {
    let t = time.centuries
    let at = FundamentalArguments(time)
    let (a1, a2, a3) = (119.75 + 131.849 * t, 53.09 + 479_264.290 * t, 313.45 + 481_266.484 * t)
    // Terms with the Sun's anomaly are proportional to the eccentricity of the Earth's orbit, which decreases with time.
    let e = 1 - t * (0.002_516 + t * 0.000_007_4)
    func shrunk(_ m: Double) -> Double { m == 0 ? 1 : abs(m) == 1 ? e : e * e }
    func sine(_ degrees: Double) -> Double { sin(degrees.radians) }
    // Additive terms for the action of Venus (a1), of Jupiter (a2) and of the Earth's flattening (l1 - f), which table 47.A lacks.
    var longitude = 3958 * sine(a1) + 1962 * sine(at.l1 - at.f) + 318 * sine(a2)
    var distance = 0.0
    for term in MoonSeries.longitudeAndDistance {
      let argument = (term.d * at.d + term.m * at.m + term.m1 * at.m1 + term.f * at.f).radians
      let factor = shrunk(term.m)
      longitude += factor * term.angle * sin(argument)
      distance += factor * term.distance * cos(argument)
    }
    var latitude =
      -2235 * sine(at.l1) + 382 * sine(a3) + 175 * (sine(a1 - at.f) + sine(a1 + at.f)) + 127 * sine(at.l1 - at.m1)
      - 115 * sine(at.l1 + at.m1)
    for term in MoonSeries.latitude {
      let argument = (term.d * at.d + term.m * at.m + term.m1 * at.m1 + term.f * at.f).radians
      latitude += shrunk(term.m) * term.angle * sin(argument)
    }
    return EclipticPosition(
      // The table's unit is 1e-6 degrees, and metres for the distance.
      longitude: (at.l1 + longitude / 1_000_000 + nutation.longitude).turned, latitude: latitude / 1_000_000,
      kilometers: 385_000.56 + distance / 1000)
  }

  /// Returns the position as a vector in kilometres with the x axis toward the true equinox and the z axis toward the celestial pole.
  func equatorial(obliquity: Double) -> SIMD3<Double> {
    let (l, b) = (longitude.radians, latitude.radians)
    let (x, y, z) = (cos(b) * cos(l), cos(b) * sin(l), sin(b))
    let (c, s) = (cos(obliquity), sin(obliquity))
    return kilometers * SIMD3(x, y * c - z * s, y * s + z * c)
  }
}
