import Foundation

/// Nutation and obliquity of the Earth's axis at an instant (Meeus, chapter 22).
struct Nutation {
  /// Nutation in longitude, in degrees.
  let longitude: Double
  /// True obliquity of the ecliptic, in radians.
  let obliquity: Double

  init(_ time: AstronomicalTime) {
    let t = time.centuries
    let arguments = FundamentalArguments(time)
    let node = 125.044_52 + t * (-1934.136_261 + t * (0.002_070_8 + t / 450_000))
    var (psi, epsilon) = (0.0, 0.0)
    for term in Self.terms {
      let argument =
        (term.d * arguments.d + term.m * arguments.m + term.m1 * arguments.m1 + term.f * arguments.f + term.node * node).radians
      psi += (term.psi + term.psiRate * t) * sin(argument)
      epsilon += (term.epsilon + term.epsilonRate * t) * cos(argument)
    }
    // The coefficients are in 0.0001 seconds of arc.
    longitude = psi / 36_000_000
    let mean = 23.439_291_111 + t * (-0.013_004_167 + t * (-0.000_000_164 + t * 0.000_000_504))
    obliquity = (mean + epsilon / 36_000_000).radians
  }

  private struct Term {
    let d, m, m1, f, node, psi, psiRate, epsilon, epsilonRate: Double

    init(
      _ d: Double, _ m: Double, _ m1: Double, _ f: Double, _ node: Double, _ psi: Double, _ psiRate: Double, _ epsilon: Double,
      _ epsilonRate: Double
    ) {
      (self.d, self.m, self.m1, self.f, self.node) = (d, m, m1, f, node)
      (self.psi, self.psiRate, self.epsilon, self.epsilonRate) = (psi, psiRate, epsilon, epsilonRate)
    }
  }

  /// The greatest terms of table 22.A in Meeus, Astronomical Algorithms.
  ///
  /// The sum of the omitted terms stays below 0.05 seconds of arc.
  private static let terms: [Term] = [
    Term(0, 0, 0, 0, 1, -171_996, -174.2, 92_025, 8.9),
    Term(-2, 0, 0, 2, 2, -13_187, -1.6, 5736, -3.1),
    Term(0, 0, 0, 2, 2, -2274, -0.2, 977, -0.5),
    Term(0, 0, 0, 0, 2, 2062, 0.2, -895, 0.5),
    Term(0, 1, 0, 0, 0, 1426, -3.4, 54, -0.1),
    Term(0, 0, 1, 0, 0, 712, 0.1, -7, 0),
    Term(-2, 1, 0, 2, 2, -517, 1.2, 224, -0.6),
    Term(0, 0, 0, 2, 1, -386, -0.4, 200, 0),
    Term(0, 0, 1, 2, 2, -301, 0, 129, -0.1),
    Term(-2, -1, 0, 2, 2, 217, -0.5, -95, 0.3),
    Term(-2, 0, 1, 0, 0, -158, 0, 0, 0),
    Term(-2, 0, 0, 2, 1, 129, 0.1, -70, 0),
    Term(0, 0, -1, 2, 2, 123, 0, -53, 0),
  ]
}

/// Mean angles of Sun and Moon, in degrees (Meeus, formulas 47.1 to 47.5).
struct FundamentalArguments {
  /// Mean longitude of the Moon.
  let l1: Double
  /// Mean elongation of the Moon from the Sun.
  let d: Double
  /// Mean anomaly of the Sun.
  let m: Double
  /// Mean anomaly of the Moon.
  let m1: Double
  /// Mean distance of the Moon from its ascending node.
  let f: Double

  init(_ time: AstronomicalTime) {
    let t = time.centuries
    // Reduced to one turn, because sines lose digits at large arguments.
    l1 = (218.316_447_7 + t * (481_267.881_234_21 + t * (-0.001_578_6 + t * (1 / 538_841 - t / 65_194_000)))).turned
    d = (297.850_192_1 + t * (445_267.111_403_4 + t * (-0.001_881_9 + t * (1 / 545_868 - t / 113_065_000)))).turned
    m = (357.529_109_2 + t * (35_999.050_290_9 + t * (-0.000_153_6 + t / 24_490_000))).turned
    m1 = (134.963_396_4 + t * (477_198.867_505_5 + t * (0.008_741_4 + t * (1 / 69_699 - t / 14_712_000)))).turned
    f = (93.272_095_0 + t * (483_202.017_523_3 + t * (-0.003_653_9 + t * (-1 / 3_526_000 + t / 863_310_000)))).turned
  }
}
