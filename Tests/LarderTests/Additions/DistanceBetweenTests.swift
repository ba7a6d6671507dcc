import Foundation
import Testing

@testable import Larder

/// The public distance of two places is the one that queries order by.
@Suite(.timeLimit(.minutes(15))) struct DistanceBetweenTests {
  private struct Place: Codable, Identifiable { let id: Int; var latitude: Double; var longitude: Double }

  @Test func aQueryFindsTheSameDistance() async throws {
    let seed = Seeds.list(1, for: "distances")[0]
    var random = SeededGenerator(seed)
    let places = try await LocalRepository(
      inMemory: RepositorySchema<Place>("places", indexes: [.geo(\.latitude, \.longitude)]))
    try await places.save(
      contentsOf: (0..<100).map {
        Place(id: $0, latitude: Double.random(in: -90...90, using: &random), longitude: Double.random(in: -180..<180, using: &random))
      })
    let matches = try await places.matches(Query().near(latitude: 35.13, longitude: 139.61))
    #expect(matches.count == 100)
    for match in matches {
      let distance = Distance.between(
        (latitude: match.item.latitude, longitude: match.item.longitude), (latitude: 35.13, longitude: 139.61))
      #expect(distance == match.distance, "replay with LARDER_SEED=\(seed)")
    }
  }

  @Test func knownDistancesAreFound() throws {
    let quarter = try #require(Distance.between((latitude: 90, longitude: 12), (latitude: 0, longitude: -77)))
    #expect(abs(quarter.meters - 6_371_008.8 * .pi / 2) < 0.001)
    #expect(Distance.between((1, 2), (1, 362)) == .meters(0))
    let acrossTheDateLine = try #require(Distance.between((0, 179.5), (0, -179.5)))
    #expect(abs(acrossTheDateLine.meters - 111_195) < 1)
  }

  @Test func whatIsNoPlaceHasNoDistance() {
    for place in [(91.0, 0.0), (.nan, 0), (0, .infinity), (0, .nan)] {
      #expect(Distance.between((place.0, place.1), (0, 0)) == nil && Distance.between((0, 0), (place.0, place.1)) == nil)
    }
  }
}
