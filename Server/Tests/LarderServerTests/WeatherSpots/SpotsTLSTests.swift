import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// Devices that speak to their server over TLS, which is another way through their code than without it.
@Suite(
  .enabled(if: BuiltPrograms.hasWeatherSpots),
  .enabled(if: Command.openssl != nil && Command.curl != nil && Command.clang != nil, "openssl, curl or clang is missing"),
  .timeLimit(.minutes(15)))
struct SpotsTLSTests {
  private static func run(_ test: (String, [String: String], TemporaryDirectory) async throws -> Void) async throws {
    let directory = try TemporaryDirectory()
    let (certificate, key) = (directory.file("certificate"), directory.file("key"))
    try await TestCertificate.make(certificate, key)
    let environment = try await TestCertificate.environment(trusting: certificate, in: directory)
    try await SpotsServer.run(in: directory, ["--tls-certificate", certificate, "--tls-key", key]) { server in
      try await test("https://localhost:\(server.port)", environment, directory)
    }
  }

  @Test func twoDevicesSyncAndAStrangerIsNotTrusted() async throws {
    try await Self.run { url, environment, directory in
      let stranger = SpotsDevice("stranger.sqlite", in: directory)
      let refused = try await stranger.run("sync", url)
      #expect(refused.code == 69, "\(refused)")
      // A page of some hundred kilobytes, which comes in gzip.
      let count = 1_000
      let rows = (0..<count).map { "Buoy \($0),\(Double($0 % 170) - 85),\(Double($0 / 10)),GMT,buoy,seen from \($0) far places\n" }
      let file = directory.file("spots.csv")
      try ("name,latitude,longitude,timezone,kind,notes\n" + rows.joined()).write(toFile: file, atomically: true, encoding: .utf8)
      let devices = ["here.sqlite", "there.json"].map { SpotsDevice($0, in: directory, environment: environment) }
      try await devices[0].expect("import", file)
      #expect(try await devices[0].expect("sync", url, "--json").number("pushed") == count)
      #expect(try await devices[1].expect("sync", url, "--json").number("pulled") == count)
      try await devices[1].expect("visit", "Buoy 7")
      for device in devices.reversed() { try await device.expect("sync") }
      #expect(try await devices[0].exported() == devices[1].exported())
      for device in devices { #expect(try await device.expect("verify").code == 0) }
    }
  }

  @Test func newsComeByEventsAndEndsAreClean() async throws {
    try await Self.run { url, environment, directory in
      let devices = ["here.sqlite", "there.sqlite"].map { SpotsDevice($0, in: directory, environment: environment) }
      try await devices[0].addPier()
      for device in devices { try await device.expect("sync", url) }
      let watching = [try SpotsWatching(devices[0]), try SpotsWatching(devices[1])]
      defer { for watch in watching { watch.process.send(SIGKILL) } }
      // Two streams, and none that took the place of another: who has none asks in turns.
      let streams = [
        #"larder_requests_total{route="/v1/scopes/{scope}/events",method="GET",status="200"} 2"#, "larder_streams 2",
      ]
      func hasStreams() async throws -> Bool {
        let numbers = try await Command.run(
          Command.curl, ["-sS", "--noproxy", "*", "--cacert", directory.file("certificate"), url + "/metrics"])
        return streams.allSatisfy { numbers.output.contains("\($0)\n") }
      }
      while try await !hasStreams() { await Task.yield() }
      var there = watching[1].pipe.lines.makeAsyncIterator()
      for visit in 1...3 {
        try await devices[0].expect("visit", "Pier")
        while let line = await there.next(isolation: #isolation), !line.text.contains("\"visits\":\(visit)") {}
        #expect(try await devices[1].visits() == visit)
      }
      #expect(try await hasStreams())
      // One ends as it is told to, the other one is killed, and neither leaves anything behind.
      await watching[0].end()
      watching[1].process.send(SIGKILL)
      #expect(await watching[1].process.end() == -SIGKILL)
      for device in devices { try await device.expect("visit", "Pier") }
      for device in devices + devices { try await device.expect("sync") }
      for device in devices {
        #expect(try await device.visits() == 5)
        #expect(try await device.expect("verify").code == 0)
      }
    }
  }
}
