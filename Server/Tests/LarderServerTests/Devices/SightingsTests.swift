import LarderWire
import Testing

@testable import LarderServer

/// What a server keeps of the devices that ask, until it is stored.
@Suite struct SightingsTests {
  private static func question(_ device: String = "d1", since: Int = 0, pending: Int? = nil) -> SyncChangesRequest {
    var question = SyncChangesRequest(device: device, since: since)
    question.pending = pending
    return question
  }

  private static func reading(_ until: Int) -> PageReading { PageReading(history: "h", until: until) }

  @Test func aQuestionIsStoredOnceUntilTheNext() {
    let sightings = Sightings()
    sightings.note(Self.question(pending: 3), app: "1.0", Self.reading(5), in: "a", by: "ann", now: 7)
    sightings.note(Self.question(since: 5), app: nil, Self.reading(6), in: "a", by: "ann", now: 8)
    #expect(sightings.takeNew() == [DeviceSighting(scope: "a", device: "d1", owner: "ann", seenAt: 8, history: "h", position: 6)])
    #expect(sightings.takeNew() == [])
    sightings.note(Self.question(since: 6, pending: 0), app: "1.0", Self.reading(6), in: "a", by: "ann", now: 9)
    #expect(sightings.takeNew().first?.pending == 0)
    // A question without a device, as by hand, is nobody's.
    sightings.note(Self.question(""), app: nil, Self.reading(6), in: "a", by: "ann", now: 9)
    #expect(sightings.takeNew() == [])
  }

  @Test func aDeviceThatDoesNotTakeItsPageIsBehind() {
    let sightings = Sightings()
    func position(since: Int, until: Int) -> Int? {
      sightings.note(Self.question(since: since), app: nil, Self.reading(until), in: "a", by: "ann", now: 1)
      return sightings.takeNew().first?.position
    }
    // The answer to the first question may be lost.
    #expect([position(since: 2, until: 9), position(since: 2, until: 9), position(since: 2, until: 10)] == [9, 9, 2])
    #expect([position(since: 2, until: 10), position(since: 10, until: 10)] == [2, 10])
    // One that waits for news asks for the same, and was given nothing.
    for _ in 0..<5 { #expect(position(since: 10, until: 10) == 10) }
  }

  @Test func fewDevicesAreNotedBetweenTwoWrites() {
    let sightings = Sightings(most: 16)
    for round in 0..<3 {
      for number in 0..<6 { sightings.note(Self.question("d\(round)-\(number)"), app: nil, Self.reading(1), in: "a", by: "ann", now: 1) }
      #expect((1...4).contains(sightings.takeNew().count), "\(round)")
      // One that is known is noted again, however full it is.
      sightings.note(Self.question("d\(round)-0"), app: nil, Self.reading(2), in: "a", by: "ann", now: 2)
      #expect(sightings.takeNew().map(\.position) == [2])
    }
  }

  /// Names of devices are of the client's choosing.
  @Test func oneIdentityLeavesPlacesToOthers() {
    let sightings = Sightings(most: 16)
    for number in 0..<99 { sightings.note(Self.question("d\(number)"), app: nil, Self.reading(1), in: "a", by: "ann", now: 1) }
    // A scope without commits takes no place.
    for number in 0..<99 { sightings.note(Self.question("n\(number)"), app: nil, Self.reading(0), in: "b", by: "dan", now: 1) }
    for device in ["b1", "b2"] { sightings.note(Self.question(device), app: nil, Self.reading(1), in: "a", by: "bob", now: 1) }
    // A device that is known keeps its place.
    sightings.note(Self.question("d0"), app: nil, Self.reading(2), in: "a", by: "ann", now: 2)
    let found = sightings.takeNew()
    #expect(found.count { $0.owner == "ann" } == 4 && found.count { $0.owner == "bob" } == 2 && found.count == 6)
    #expect(found.first { $0.device == "d0" }?.position == 2)
    // When they are stored, the next have places.
    for _ in 0..<2 {
      _ = sightings.takeNew()
      sightings.note(Self.question("new"), app: nil, Self.reading(1), in: "a", by: "ann", now: 3)
    }
    #expect(sightings.takeNew().map(\.device) == ["new"])
  }

  /// Many others that have read everything are dropped before a device that has not taken its page.
  @Test func aDeviceThatDoesNotTakeItsPageIsKnownAmongMany() {
    let sightings = Sightings(most: 16)
    for round in 0..<3 {
      sightings.note(Self.question("slow", since: 1), app: nil, Self.reading(9), in: "a", by: "ann", now: round)
      for number in 0..<3 {
        sightings.note(Self.question("d\(round)-\(number)", since: 9), app: nil, Self.reading(9), in: "a", by: "ann", now: round + 1)
      }
      let slow = sightings.takeNew().first { $0.device == "slow" }
      #expect(slow?.position == (round < 2 ? 9 : 1), "\(round)")
      // Once more, while it does not ask.
      _ = sightings.takeNew()
    }
  }
}
