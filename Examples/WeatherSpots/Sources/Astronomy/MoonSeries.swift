/// The periodic terms of the Moon, all 60 of table 47.A and all 60 of table 47.B in Meeus, Astronomical Algorithms.
///
/// The tables hold the greatest terms of the theory ELP-2000/82 by M. Chapront-Touzé and J. Chapront.
enum MoonSeries {
  /// One term of longitude and distance: multiples of D, M, M', F, then 1e-6 degrees of a sine and metres of a cosine.
  struct Term {
    let d, m, m1, f, longitude, distance: Double

    init(_ d: Double, _ m: Double, _ m1: Double, _ f: Double, _ longitude: Double, _ distance: Double) {
      (self.d, self.m, self.m1, self.f, self.longitude, self.distance) = (d, m, m1, f, longitude, distance)
    }
  }

  /// One term of latitude: multiples of D, M, M', F, then 1e-6 degrees of a sine.
  struct LatitudeTerm {
    let d, m, m1, f, latitude: Double

    init(_ d: Double, _ m: Double, _ m1: Double, _ f: Double, _ latitude: Double) {
      (self.d, self.m, self.m1, self.f, self.latitude) = (d, m, m1, f, latitude)
    }
  }

  /// Terms of the Moon's longitude and distance (table 47.A).
  static let longitudeAndDistance: [Term] = [
    Term(0, 0, 1, 0, 6_288_774, -20_905_355), Term(2, 0, -1, 0, 1_274_027, -3_699_111), Term(2, 0, 0, 0, 658_314, -2_955_968),
    Term(0, 0, 2, 0, 213_618, -569_925), Term(0, 1, 0, 0, -185_116, 48_888), Term(0, 0, 0, 2, -114_332, -3149),
    Term(2, 0, -2, 0, 58_793, 246_158), Term(2, -1, -1, 0, 57_066, -152_138), Term(2, 0, 1, 0, 53_322, -170_733),
    Term(2, -1, 0, 0, 45_758, -204_586), Term(0, 1, -1, 0, -40_923, -129_620), Term(1, 0, 0, 0, -34_720, 108_743),
    Term(0, 1, 1, 0, -30_383, 104_755), Term(2, 0, 0, -2, 15_327, 10_321), Term(0, 0, 1, 2, -12_528, 0),
    Term(0, 0, 1, -2, 10_980, 79_661), Term(4, 0, -1, 0, 10_675, -34_782), Term(0, 0, 3, 0, 10_034, -23_210),
    Term(4, 0, -2, 0, 8548, -21_636), Term(2, 1, -1, 0, -7888, 24_208), Term(2, 1, 0, 0, -6766, 30_824),
    Term(1, 0, -1, 0, -5163, -8379), Term(1, 1, 0, 0, 4987, -16_675), Term(2, -1, 1, 0, 4036, -12_831), Term(2, 0, 2, 0, 3994, -10_445),
    Term(4, 0, 0, 0, 3861, -11_650), Term(2, 0, -3, 0, 3665, 14_403), Term(0, 1, -2, 0, -2689, -7003), Term(2, 0, -1, 2, -2602, 0),
    Term(2, -1, -2, 0, 2390, 10_056), Term(1, 0, 1, 0, -2348, 6322), Term(2, -2, 0, 0, 2236, -9884), Term(0, 1, 2, 0, -2120, 5751),
    Term(0, 2, 0, 0, -2069, 0), Term(2, -2, -1, 0, 2048, -4950), Term(2, 0, 1, -2, -1773, 4130), Term(2, 0, 0, 2, -1595, 0),
    Term(4, -1, -1, 0, 1215, -3958), Term(0, 0, 2, 2, -1110, 0), Term(3, 0, -1, 0, -892, 3258), Term(2, 1, 1, 0, -810, 2616),
    Term(4, -1, -2, 0, 759, -1897), Term(0, 2, -1, 0, -713, -2117), Term(2, 2, -1, 0, -700, 2354), Term(2, 1, -2, 0, 691, 0),
    Term(2, -1, 0, -2, 596, 0), Term(4, 0, 1, 0, 549, -1423), Term(0, 0, 4, 0, 537, -1117), Term(4, -1, 0, 0, 520, -1571),
    Term(1, 0, -2, 0, -487, -1739), Term(2, 1, 0, -2, -399, 0), Term(0, 0, 2, -2, -381, -4421), Term(1, 1, 1, 0, 351, 0),
    Term(3, 0, -2, 0, -340, 0), Term(4, 0, -3, 0, 330, 0), Term(2, -1, 2, 0, 327, 0), Term(0, 2, 1, 0, -323, 1165),
    Term(1, 1, -1, 0, 299, 0), Term(2, 0, 3, 0, 294, 0), Term(2, 0, -1, -2, 0, 8752),
  ]

  /// Terms of the Moon's latitude (table 47.B).
  static let latitude: [LatitudeTerm] = [
    LatitudeTerm(0, 0, 0, 1, 5_128_122), LatitudeTerm(0, 0, 1, 1, 280_602), LatitudeTerm(0, 0, 1, -1, 277_693),
    LatitudeTerm(2, 0, 0, -1, 173_237), LatitudeTerm(2, 0, -1, 1, 55_413), LatitudeTerm(2, 0, -1, -1, 46_271),
    LatitudeTerm(2, 0, 0, 1, 32_573), LatitudeTerm(0, 0, 2, 1, 17_198), LatitudeTerm(2, 0, 1, -1, 9266),
    LatitudeTerm(0, 0, 2, -1, 8822), LatitudeTerm(2, -1, 0, -1, 8216), LatitudeTerm(2, 0, -2, -1, 4324), LatitudeTerm(2, 0, 1, 1, 4200),
    LatitudeTerm(2, 1, 0, -1, -3359), LatitudeTerm(2, -1, -1, 1, 2463), LatitudeTerm(2, -1, 0, 1, 2211),
    LatitudeTerm(2, -1, -1, -1, 2065), LatitudeTerm(0, 1, -1, -1, -1870), LatitudeTerm(4, 0, -1, -1, 1828),
    LatitudeTerm(0, 1, 0, 1, -1794), LatitudeTerm(0, 0, 0, 3, -1749), LatitudeTerm(0, 1, -1, 1, -1565), LatitudeTerm(1, 0, 0, 1, -1491),
    LatitudeTerm(0, 1, 1, 1, -1475), LatitudeTerm(0, 1, 1, -1, -1410), LatitudeTerm(0, 1, 0, -1, -1344),
    LatitudeTerm(1, 0, 0, -1, -1335), LatitudeTerm(0, 0, 3, 1, 1107), LatitudeTerm(4, 0, 0, -1, 1021), LatitudeTerm(4, 0, -1, 1, 833),
    LatitudeTerm(0, 0, 1, -3, 777), LatitudeTerm(4, 0, -2, 1, 671), LatitudeTerm(2, 0, 0, -3, 607), LatitudeTerm(2, 0, 2, -1, 596),
    LatitudeTerm(2, -1, 1, -1, 491), LatitudeTerm(2, 0, -2, 1, -451), LatitudeTerm(0, 0, 3, -1, 439), LatitudeTerm(2, 0, 2, 1, 422),
    LatitudeTerm(2, 0, -3, -1, 421), LatitudeTerm(2, 1, -1, 1, -366), LatitudeTerm(2, 1, 0, 1, -351), LatitudeTerm(4, 0, 0, 1, 331),
    LatitudeTerm(2, -1, 1, 1, 315), LatitudeTerm(2, -2, 0, -1, 302), LatitudeTerm(0, 0, 1, 3, -283), LatitudeTerm(2, 1, 1, -1, -229),
    LatitudeTerm(1, 1, 0, -1, 223), LatitudeTerm(1, 1, 0, 1, 223), LatitudeTerm(0, 1, -2, -1, -220), LatitudeTerm(2, 1, -1, -1, -220),
    LatitudeTerm(1, 0, 1, 1, -185), LatitudeTerm(2, -1, -2, -1, 181), LatitudeTerm(0, 1, 2, 1, -177), LatitudeTerm(4, 0, -2, -1, 176),
    LatitudeTerm(4, -1, -1, -1, 166), LatitudeTerm(1, 0, 1, -1, -164), LatitudeTerm(4, 0, 1, -1, 132), LatitudeTerm(1, 0, -1, -1, -119),
    LatitudeTerm(4, -1, 0, -1, 115), LatitudeTerm(2, -2, 0, 1, 107),
  ]
}
