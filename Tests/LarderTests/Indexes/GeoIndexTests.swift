import Foundation
import Testing

@testable import Larder

/// The geographic index against a list of the same records.
@Suite(.timeLimit(.minutes(15))) struct GeoIndexTests {
  @Test func anIndexOfManyPlacesFindsWhatAScanFinds() throws {
    for seed in Seeds.list(1, for: "geo index") {
      var world = GeoWorld(Torture.count(4_000, full: 100_000), seed: seed)
      var index = world.index
      try compare(index, &world, rounds: 12, seed)
      let (old, oldWorld) = (index, world)
      for _ in 0..<Torture.count(3_000, full: 20_000) { edit(&index, &world) }
      try compare(index, &world, rounds: 12, seed)
      // The copy from before is as it was.
      var unchanged = oldWorld
      try compare(old, &unchanged, rounds: 4, seed)
    }
  }

  @Test func anIndexThatGrowsFromNothingAndIsEmptiedAgainFindsWhatAScanFinds() throws {
    for seed in Seeds.list(20, for: "growing geo index") {
      var world = GeoWorld(0, seed: seed)
      var index = GeoIndex()
      for number in 0..<400 {
        let spot = GeoWorld.Spot(place: world.randomPlace(), slot: slot("spot-\(number)"))
        world.spots.append(spot)
        index.insert(latitude: spot.place.latitude, longitude: spot.place.longitude, spot.slot)
      }
      try compare(index, &world, rounds: 5, seed)
      while !world.spots.isEmpty {
        let spot = world.spots.remove(at: world.random.int(0..<world.spots.count))
        let isRemoved = index.remove(latitude: spot.place.latitude, longitude: spot.place.longitude, key: spot.slot.key)
        #expect(isRemoved)
        if world.spots.count % 100 == 0 { try compare(index, &world, rounds: 2, seed) }
      }
      #expect(index.count == 0)
    }
  }

  @Test func aPlaceThatIsNoneIsNotIndexed() {
    var index = GeoIndex()
    for (latitude, longitude) in [(Double.nan, 0), (0, Double.nan), (91, 0), (-90.5, 0), (.infinity, 0), (0, .infinity)] {
      index.insert(latitude: latitude, longitude: longitude, slot("nowhere"))
      #expect(index.count == 0)
      let isRemoved = index.remove(latitude: latitude, longitude: longitude, key: RecordKey("nowhere"))
      #expect(!isRemoved)
      index.nearest(to: latitude, longitude) { _, _ in
        Issue.record("found from nowhere")
        return true
      }
    }
  }

  @Test func aLongitudeBeyond180IsWrapped() throws {
    var index = GeoIndex()
    index.insert(latitude: 10, longitude: 190, slot("a"))
    let place = try #require(GeoCoordinate(latitude: 10, longitude: -170))
    #expect(index.nearest(to: place, within: 0).map(\.key) == ["a"])
    #expect(index.within(BoundingBox(south: 0, west: -171, north: 20, east: -169)) == ["a"])
    let isRemoved = index.remove(latitude: 10, longitude: -530, key: RecordKey("a"))
    #expect(isRemoved)
  }

  @Test func aRecordIsRemovedOnlyFromThePlaceWhereItIs() {
    var index = GeoIndex()
    index.insert(latitude: 10, longitude: 10, slot("a"))
    let isMoved = index.remove(latitude: 10.000001, longitude: 10, key: RecordKey("a"))
    let isOther = index.remove(latitude: 10, longitude: 10, key: RecordKey("b"))
    #expect(!isMoved && !isOther && index.count == 1)
  }

  @Test func recordsAtOnePlaceComeInTheOrderOfTheirKeys() {
    let keys = (0..<500).map { "k\($0)" }
    let index = GeoIndex(keys.shuffled().map { (GeoWorld.null, slot($0)) })
    #expect(index.nearest(to: GeoWorld.null, limit: 100).map(\.key) == Array(keys.sorted().prefix(100)))
  }

  @Test func anEstimateIsOfTheRightSize() throws {
    let world = GeoWorld(50_000, seed: 7)
    let index = world.index
    for (box, radius) in [(5.0, 500_000.0), (30, 3_000_000), (80, 9_000_000)] {
      let area = BoundingBox(south: -box, west: 100 - box, north: box, east: 100 + box)
      let center = try #require(GeoCoordinate(latitude: 0, longitude: 100))
      let (boxed, ringed) = (world.within(area).count, world.nearest(to: center, within: radius).count)
      #expect((boxed / 2 - 20...boxed * 2 + 20).contains(index.estimate(area)), "\(boxed)")
      #expect((ringed / 2 - 20...ringed * 2 + 20).contains(index.estimate(latitude: 0, longitude: 100, within: radius)), "\(ringed)")
    }
    #expect(index.estimate(BoundingBox(south: -90, west: -180, north: 90, east: 180)) == 50_000)
  }

  private func edit(_ index: inout GeoIndex, _ world: inout GeoWorld) {
    if world.random.chance(50), !world.spots.isEmpty {
      let place = world.random.int(0..<world.spots.count)
      let spot = world.spots[place]
      world.spots.swapAt(place, world.spots.count - 1)
      world.spots.removeLast()
      if !index.remove(latitude: spot.place.latitude, longitude: spot.place.longitude, key: spot.slot.key) { Issue.record("not found") }
    } else {
      let spot = GeoWorld.Spot(place: world.randomPlace(), slot: slot("new-\(world.random.next())"))
      world.spots.append(spot)
      index.insert(latitude: spot.place.latitude, longitude: spot.place.longitude, spot.slot)
    }
  }

  private func compare(_ index: GeoIndex, _ world: inout GeoWorld, rounds: Int, _ seed: UInt64) throws {
    let replay = Comment("replay with LARDER_SEED=\(seed)")
    try #require(index.count == world.spots.count, replay)
    for round in 0..<rounds {
      let center = world.randomPlace()
      let all = world.nearest(to: center)
      let some = index.nearest(to: center, limit: 200)
      try #require(some.elementsEqual(all.prefix(200), by: ==), replay)
      // A radius that is exactly a distance holds its record.
      let any = Double.random(in: 0...2e6, using: &world.random)
      let radius = all.isEmpty || round % 2 == 1 ? any : all[min(all.count - 1, 50 * round)].meters
      try #require(index.nearest(to: center, within: radius).elementsEqual(all.prefix { $0.meters <= radius }, by: ==), replay)
      let box = randomBox(&world)
      try #require(index.within(box) == world.within(box), "\(box), LARDER_SEED=\(seed)")
    }
    let center = world.randomPlace()
    try #require(index.nearest(to: center).elementsEqual(world.nearest(to: center), by: ==), replay)
  }

  private func randomBox(_ world: inout GeoWorld) -> BoundingBox {
    let (first, second) = (world.randomPlace(), world.randomPlace())
    let latitudes = [first.latitude, second.latitude].sorted()
    return BoundingBox(south: latitudes[0], west: first.longitude, north: latitudes[1], east: second.longitude)
  }
}
