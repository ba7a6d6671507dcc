import Foundation
import Testing

/// Many records at once, and many edits of few.
@Suite(.enabled(if: BuiltPrograms.hasWeatherSpots), .timeLimit(.minutes(20))) struct SpotsVolumeTests {
  /// A file of spots, each a record of about 270 bytes.
  private static func file(_ count: Int, in directory: TemporaryDirectory) throws -> String {
    var text = "name,latitude,longitude,timezone,kind,notes\n"
    for number in 0..<count {
      text += "Buoy \(number),\(Double(number % 17_000) / 100 - 85),\(Double(number / 300) / 10 - 170),GMT,buoy,"
      text += "a buoy that lies at anchor here and is seen from far away\n"
    }
    let path = directory.file("spots.csv")
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test func theFirstSyncTakesEverything() async throws {
    let count = SpotsCounts.value("LARDER_SPOTS_RECORDS", 2_000, torture: 100_000)
    let directory = try TemporaryDirectory()
    let file = try Self.file(count, in: directory)
    try await SpotsServer.run(in: directory) { server in
      let devices = ["full.sqlite", "new.sqlite", "new.json"].map { SpotsDevice($0, in: directory) }
      try await devices[0].expect("import", file)
      let start = ContinuousClock.now
      #expect(try await devices[0].expect("sync", server.url, "--json").number("pushed") == count)
      let sent = ContinuousClock.now
      for device in devices.dropFirst() {
        let start = ContinuousClock.now
        #expect(try await device.expect("sync", server.url, "--json").number("pulled") == count)
        let time = ContinuousClock.now - start
        print("figures: weather-spots, first sync of \(count) spots to \(device.store.suffix(6)): \(time)")
        if SpotsCounts.holdsTimes { #expect(time <= .seconds(10)) }
        #expect(try await device.exported() == devices[0].exported())
      }
      print("figures: weather-spots, first push of \(count) spots: \(sent - start)")
    }
  }

  @Test func manyVisitsOfFewSpotsAreFewRecords() async throws {
    let rounds = SpotsCounts.value("LARDER_SPOTS_ROUNDS", 5, torture: 100)
    let directory = try TemporaryDirectory()
    let file = try Self.file(100, in: directory)
    try await SpotsServer.run(in: directory) { server in
      let devices = ["one.sqlite", "two.json"].map { SpotsDevice($0, in: directory) }
      try await devices[0].expect("import", file)
      for device in devices { try await device.expect("sync", server.url) }
      let names = (0..<100).map { "Buoy \($0)" }
      for _ in 0..<rounds { #expect(try await devices[0].run(["visit"] + names).code == 0) }
      let pushed = try await devices[0].expect("sync", "--json").number("pushed")
      #expect(pushed == 100)
      #expect(try await devices[1].expect("sync", "--json").number("pulled") == 100)
      #expect(try await devices[1].expect("show", "Buoy 99", "--json").number("visits") == rounds)
      print("figures: weather-spots, \(100 * rounds) visits of 100 spots without a network: \(pushed) records pushed")
    }
  }
}
