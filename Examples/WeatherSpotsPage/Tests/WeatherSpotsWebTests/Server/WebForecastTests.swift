import Foundation
import Larder
import LarderTesting
import StandInServer
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebForecastTests {
  private static let path = "/api/forecast/\("Brest @48.39029,-4.48628".escaped)"

  @Test func aForecastSaysHowLongItIsFreshAndIsSentOnce() async throws {
    try await TestWeb.run { web in
      let first = try await web.get(Self.path)
      #expect(first.status == 200)
      #expect(first.json["days"]?.arrayValue?.count == 7)
      #expect(try #require(first.json["hours"]?.arrayValue?.count) >= 7 * 23)
      #expect(first.json["astronomy"]?.arrayValue?.count == 7)
      #expect(first.json["recorded"]?.boolValue == true)
      let control = try #require(first.headers["cache-control"])
      let seconds = try #require(control.firstMatch(of: /private, max-age=(\d+)/).flatMap { Int($0.1) })
      // The conditions of the moment are fresh for ten minutes, less what their lifetimes differ by.
      #expect((300...600).contains(seconds))
      let tag = try #require(try await web.get(Self.path).headers["etag"])
      let again = try await web.get(Self.path, headers: ["If-None-Match": tag])
      #expect(again.status == 304)
      #expect(again.body.isEmpty)
    }
  }

  @Test func withoutAServiceTheReasonIsTold() async throws {
    let server = try StandInServer()
    let url = try await server.start()
    await server.stop()
    try await TestWeb.run(provider: OpenMeteoProvider(servers: OpenMeteoServers(url))) { web in
      let answer = try await web.get(Self.path)
      #expect(answer.status == 200)
      #expect(answer.headers["cache-control"] == "no-store")
      #expect(answer.json["problem"]?.stringValue?.isEmpty == false)
      #expect(answer.json["hours"]?.isNull == true)
    }
  }

  @Test func whatWasFetchedIsShownWhenTheServiceIsGone() async throws {
    let server = try StandInServer()
    let url = try await server.start()
    var options = WebOptions()
    options.policy = .networkFirst(timeout: .seconds(5))
    try await TestWeb.run(options, provider: OpenMeteoProvider(servers: OpenMeteoServers(url))) { web in
      #expect(try await web.get(Self.path).json["stale"]?.boolValue == false)
      await server.stop()
      let stale = try await web.get(Self.path)
      #expect(stale.json["stale"]?.boolValue == true)
      #expect(stale.json["problem"]?.stringValue?.isEmpty == false)
      #expect(stale.json["hours"]?.arrayValue?.isEmpty == false)
      #expect(stale.headers["cache-control"] == "no-cache")
    }
  }

  @Test func whatIsOldIsNotCalledFresh() async throws {
    let clock = ManualClock(now: Date(timeIntervalSince1970: 1_790_000_000))
    try await TestWeb.run(provider: OpenMeteoProvider.recorded(now: { clock.now }), clock: clock) { web in
      _ = try await web.get(Self.path)
      // The conditions of the moment are old, the hours are not.
      clock.advance(by: .seconds(900))
      let stale = try await web.get(Self.path)
      #expect(stale.json["now"]?["stale"]?.boolValue == true)
      #expect(stale.headers["cache-control"] == "no-cache")
    }
  }

  @Test func aChangeOfTheSpotIsInItsForecastAtOnce() async throws {
    try await TestWeb.run { web in
      let tag = try #require(try await web.get(Self.path).headers["etag"])
      try await web.storage.change(["Brest @48.39029,-4.48628"]) { try $0.edited(Spot.Changes(country: "DE")) }
      let answer = try await web.get(Self.path, headers: ["If-None-Match": tag])
      #expect(answer.status == 200)
      #expect(answer.json["country"]?.stringValue == "DE")
    }
  }
}
