import Foundation
import Testing

@testable import Larder

/// Whether to run what only prints how long something takes; meant for a release build.
let isMeasuring = ProcessInfo.processInfo.environment["LARDER_MEASURE"] != nil

/// Prints the median of a thing done many times.
func measure(_ name: String, rounds: Int = 200, _ body: (Int) -> Void) {
  let clock = ContinuousClock()
  let times = (0..<rounds).map { round in clock.measure { body(round) } }.sorted()
  print("\(name): least \(times[0]), median \(times[rounds / 2]), 95 % \(times[rounds * 95 / 100])")
}

@Suite(.enabled(if: isMeasuring)) struct GeoMeasurement {
  @Test func whatTheGeographicIndexCosts() {
    var world = GeoWorld(100_000, seed: 1)
    let entries = world.spots.map { ($0.place, $0.slot) }
    var index = GeoIndex(entries)
    measure("bulk build of 100 000 places", rounds: 5) { _ in index = GeoIndex(entries) }
    let centers = (0..<2_000).map { _ in world.randomPlace() }
    measure("k-nearest 10 of 100 000", rounds: 2_000) { _ = index.nearest(to: centers[$0], limit: 10) }
    measure("50 km of 100 000", rounds: 2_000) { _ = index.nearest(to: centers[$0], within: 50_000) }
    measure("estimate within 50 km", rounds: 2_000) {
      _ = index.estimate(latitude: centers[$0].latitude, longitude: centers[$0].longitude, within: 50_000)
    }
    let slots = centers.indices.map { slot("new-\($0)") }
    measure("insert", rounds: 2_000) { index.insert(latitude: centers[$0].latitude, longitude: centers[$0].longitude, slots[$0]) }
    var copies: [GeoIndex] = []
    measure("insert beside a copy", rounds: 2_000) {
      copies = [index]
      index.insert(latitude: centers[$0].latitude + 0.1, longitude: centers[$0].longitude, slots[$0])
    }
    measure("remove", rounds: 2_000) { index.remove(latitude: centers[$0].latitude, longitude: centers[$0].longitude, key: slots[$0].key) }
    #expect(copies.count == 1)
  }
}
