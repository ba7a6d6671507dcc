import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// From a change in one store to the other one, while both are synced by processes that stay.
@Suite(.enabled(if: BuiltPrograms.hasWeatherSpots), .timeLimit(.minutes(20))) struct SpotsNewsTests {
  @Test(arguments: [false, true]) func aVisitIsSeenInTheOtherStore(withoutEvents: Bool) async throws {
    let count = SpotsCounts.value("LARDER_SPOTS_NEWS", withoutEvents ? 3 : 10, torture: 50)
    let directory = try TemporaryDirectory()
    try await SpotsServer.run(in: directory) { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      if withoutEvents { proxy.set(.init(blocked: "/events")) }
      let devices = ["here.sqlite", "there.sqlite"].map { SpotsDevice($0, in: directory) }
      try await devices[0].addPier()
      for device in devices { try await device.expect("sync", proxy.base) }
      let watching = [try SpotsWatching(devices[0]), try SpotsWatching(devices[1])]
      defer { for watch in watching { watch.process.send(SIGKILL) } }
      var there = watching[1].pipe.lines.makeAsyncIterator()
      // Both have said that they are in sync.
      for watch in watching.dropLast() { _ = await watch.pipe.lines.first { _ in true } }
      _ = await there.next()
      var times: [Double] = []
      var random = SystemRandomNumberGenerator()
      for visit in 1...count {
        try await devices[0].expect("visit", "Pier")
        let start = ContinuousClock.now
        var seen: LinePipe.Line?
        while let line = await there.next() {
          if line.text.contains("\"visits\":\(visit)") {
            seen = line
            break
          }
        }
        let end = try #require(seen).time
        times.append(max(0, (end - start) / .milliseconds(1)))
        // The line is written after the commit: whoever reads the store now finds it.
        #expect(try await devices[1].visits() == visit)
        // Not in step with what looks for news in turns.
        await Moment.pass(.random(in: 0..<(withoutEvents ? 2 : 0.1), using: &random))
      }
      for watch in watching { await watch.end() }
      let sorted = times.sorted()
      let (middle, late, longest) = (sorted[count / 2], sorted[count * 95 / 100], sorted[count - 1])
      let how = withoutEvents ? "without events" : "with events"
      print("figures: weather-spots, \(count) visits seen in the other store \(how): p50 \(middle), p95 \(late), longest \(longest) ms")
      if SpotsCounts.holdsTimes { #expect(longest <= (withoutEvents ? 2_500 : 200)) }
    }
  }
}
