import Foundation
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite struct SpotClusterTests {
  /// Pairs some hundred metres apart, with the edge of a cell between them: the equator, the meridian of Greenwich, the date line, an edge
  /// somewhere, a corner.
  @Test(arguments: [
    (0.001, 10.0, -0.001, 10.0), (48.0, 0.002, 48.0, -0.002), (-17.0, 179.999, -17.0, -179.999), (48.2959, 5.0, 48.2951, 5.0),
    (0.001, 0.001, -0.001, -0.001),
  ]) func nearPointsOnBothSidesOfAnEdgeAreOneCluster(_ pair: (Double, Double, Double, Double)) throws {
    let watchers = [try watcher("a", pair.0, pair.1), try watcher("b", pair.2, pair.3)]
    #expect(Set(watchers.map { Geohash($0.coordinate, precision: 5) }).count == 2, "the test's points are in one cell")
    let clusters = SpotCluster.clusters(of: watchers)
    #expect(clusters.count == 1)
    #expect(clusters.first?.watchers.map(\.id) == ["a", "b"])
  }

  @Test func aBorderIsNeverCrossed() throws {
    let clusters = SpotCluster.clusters(of: [
      try watcher("a", 48.0, 5.0, country: "FR"), try watcher("b", 48.0, 5.0, country: "DE"), try watcher("c", 48.0, 5.001, country: "DE"),
    ])
    #expect(clusters.map(\.id.country) == ["DE", "FR"])
    #expect(clusters.map(\.watchers.count) == [2, 1])
  }

  @Test func pointsThatAreFarApartAreNot() throws {
    #expect(SpotCluster.clusters(of: [try watcher("a", 48.0, 5.0), try watcher("b", 48.1, 5.0)]).count == 2)
    #expect(SpotCluster.clusters(of: []).isEmpty)
  }

  /// Dense places all over the globe, the poles and the date line among them.
  private func many(_ random: inout SeededGenerator) throws -> [Watcher] {
    let centers = [(0.0, 0.0), (48.4, -4.5), (69.65, 18.96), (-17.7, 179.99), (89.9, 30), (-89.99, 0), (35.1, 139.6)]
    return try (0..<1200).map { index in
      let center = centers[index % centers.count]
      let latitude = min(max(center.0 + Double.random(in: -0.2..<0.2, using: &random), -90), 90)
      let longitude = center.1 + Double.random(in: -0.3..<0.3, using: &random)
      return try watcher("w\(index)", latitude, longitude > 180 ? longitude - 360 : longitude, country: index % 5 == 0 ? "FR" : "")
    }
  }

  @Test func aClusterIsBoundedAndEveryoneIsInOne() throws {
    let seed = seedOfTest()
    var random = SeededGenerator(seed: seed)
    let watchers = try many(&random)
    let clusters = SpotCluster.clusters(of: watchers)
    #expect(clusters.flatMap(\.watchers).map(\.id).sorted() == watchers.map(\.id).sorted(), "LARDER_SEED=\(seed)")
    #expect(Set(clusters.map(\.id)).count == clusters.count)
    for cluster in clusters {
      let distance = cluster.watchers.map { cluster.center.kilometers(to: $0.coordinate) }.max() ?? 0
      #expect(distance <= SpotCluster.radius, "LARDER_SEED=\(seed) \(cluster.id)")
      #expect(Set(cluster.watchers.map(\.country)) == [cluster.id.country])
    }
    #expect(clusters.count < Set(watchers.map { "\(Geohash($0.coordinate, precision: 5)) \($0.country)" }).count)
  }

  @Test func theOrderOfTheWatchersDoesNotMatterNorHowManyThereAreAtAPoint() async throws {
    let seed = seedOfTest()
    var random = SeededGenerator(seed: seed)
    let watchers = try many(&random)
    func shape(_ clusters: [SpotCluster]) -> [String] { clusters.map { "\($0.id.rawValue): \($0.watchers.map(\.id))" } }
    let expected = shape(SpotCluster.clusters(of: watchers))
    for _ in 0..<3 {
      await Task.yield()
      let shuffled = watchers.shuffled(using: &random)
      #expect(shape(SpotCluster.clusters(of: shuffled)) == expected, "LARDER_SEED=\(seed)")
    }
    let doubled =
      try watchers
      + watchers.prefix(200).map { try watcher("\($0.id)+", $0.coordinate.latitude, $0.coordinate.longitude, country: $0.country) }
    #expect(Set(SpotCluster.clusters(of: doubled).map(\.id)) == Set(SpotCluster.clusters(of: watchers).map(\.id)), "LARDER_SEED=\(seed)")
  }
}

/// The seed of a random test: from LARDER_SEED, or a new one.
func seedOfTest() -> UInt64 {
  ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
}
