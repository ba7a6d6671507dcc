import Foundation
import Testing

@testable import Larder

/// Distances and boxes by themselves.
@Suite struct GeoValueTests {
  private func place(_ latitude: Double, _ longitude: Double) throws -> GeoCoordinate {
    try #require(GeoCoordinate(latitude: latitude, longitude: longitude))
  }

  @Test func distancesAreThoseOfTheSphere() throws {
    let quarter = GreatCircle.earthRadius * .pi / 2
    let cases: [(Double, Double, Double, Double, Double)] = [
      (0, 0, 0, 90, quarter), (0, 0, 90, 12, quarter), (90, 5, -90, 77, 2 * quarter), (0, 0, 0, 180, 2 * quarter),
      (37, -20, -37, 160, 2 * quarter), (0, 179.5, 0, -179.5, quarter / 90), (89, 0, 89, 180, quarter / 45), (10, 20, 10, 20, 0),
      (0, 0, 0, 1e-9, quarter / 90 * 1e-9), (45, 7, 45 + 1e-9, 7, (45 + 1e-9 - 45) * quarter / 90), (0, 0, 1e-7, 180 - 1e-7, 0),
    ]
    for (latitude, longitude, otherLatitude, otherLongitude, meters) in cases {
      let (a, b) = (try place(latitude, longitude), try place(otherLatitude, otherLongitude))
      // Near the antipode the distance falls short of half the circumference by that of the antipode.
      let expected = meters > 0 || a == b ? meters : 2 * quarter - 1e-7 * 2.0.squareRoot() * quarter / 90
      #expect(abs(GreatCircle.distance(a, b) - expected) <= 1e-12 * expected + 1e-8, "\(a) \(b)")
      #expect(GreatCircle.distance(a, b) == GreatCircle.distance(b, a))
    }
  }

  @Test func distancesAgreeWithTheAngleBetweenVectors() throws {
    for seed in Seeds.list(1, for: "distances") {
      var world = GeoWorld(0, seed: seed)
      for _ in 0..<20_000 {
        let (a, b) = (world.randomPlace(), world.randomPlace())
        let (p, q) = (SpherePoint(a), SpherePoint(b))
        let cross = [p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x].reduce(0) { $0 + $1 * $1 }.squareRoot()
        let expected = GreatCircle.earthRadius * atan2(cross, p.x * q.x + p.y * q.y + p.z * q.z)
        try #require(abs(GreatCircle.distance(a, b) - expected) <= 1e-7, "\(a) \(b), LARDER_SEED=\(seed)")
        let chord = p.squaredChord(to: q)
        try #require(GreatCircle.leastDistance(squaredChord: chord) <= GreatCircle.distance(a, b), "LARDER_SEED=\(seed)")
        try #require(GreatCircle.mostSquaredChord(within: GreatCircle.distance(a, b)) >= chord, "LARDER_SEED=\(seed)")
      }
    }
  }

  @Test func aBoxHoldsItsBoundaryAndCrossesTheDateLine() {
    let across = BoundingBox(south: -10, west: 170, north: 20, east: -170)
    let cases: [(BoundingBox, Double, Double, Bool)] = [
      (across, 0, 175, true), (across, 0, -175, true), (across, 0, 180, true), (across, 0, -180, true), (across, 20, 170, true),
      (across, -10, -170, true), (across, 0, 169.999, false), (across, 0, 0, false), (across, 20.001, 180, false), (across, 0, 535, true),
      (BoundingBox(south: -10, west: 170, north: 20, east: 190), 0, -175, true),
      (BoundingBox(south: -10, west: 170, north: 20, east: 190), 0, -169, false),
      (BoundingBox(south: 0, west: 170, north: 5, east: 180), 1, -180, true),
      (BoundingBox(south: 0, west: 170, north: 5, east: 180), 1, -179, false),
      (BoundingBox(south: 0, west: -180, north: 5, east: -170), 1, 180, true),
      (BoundingBox(south: 0, west: 180, north: 5, east: 180), 1, -180, true),
      (BoundingBox(south: 0, west: 180, north: 5, east: -180), 1, 0, false),
      (BoundingBox(south: -90, west: -180, north: 90, east: 180), 1, 0, true),
      (BoundingBox(south: 80, west: 10, north: 90, east: 20), 90, -100, true),
      (BoundingBox(south: -90, west: 10, north: 0, east: 20), -90, 100, true),
      (BoundingBox(south: 80, west: 10, north: 89, east: 20), 90, 15, false),
      (BoundingBox(south: 10, west: 10, north: 0, east: 20), 5, 15, false),
      (BoundingBox(south: 0, west: .nan, north: 10, east: 20), 5, 15, false),
      (across, .nan, 175, false), (across, 0, .infinity, false),
    ]
    for (box, latitude, longitude, isInside) in cases {
      #expect(box.contains(latitude: latitude, longitude: longitude) == isInside, "\(box) \(latitude) \(longitude)")
    }
  }

  @Test func distancesHaveUnits() throws {
    #expect(Distance.kilometers(1.5) == .meters(1_500))
    #expect(Distance.miles(1).meters == 1_609.344)
    #expect(Distance.nauticalMiles(2).meters == 3_704)
    #expect(Distance.meters(10) < .kilometers(1))
    let distances = [Distance.meters(850), .meters(12.34), .kilometers(50), .kilometers(1.25), .meters(999.96), .meters(.infinity)]
    #expect(distances.map(\.description) == ["850 m", "12.3 m", "50 km", "1.3 km", "1 km", "inf km"])
    let copy = try JSONDecoder().decode(Distance.self, from: JSONEncoder().encode(Distance.miles(3)))
    #expect(copy == .miles(3))
  }
}
