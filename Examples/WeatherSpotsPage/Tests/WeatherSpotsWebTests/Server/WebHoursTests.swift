import Foundation
import Larder
import StandInServer
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

/// The weather of the present hour of many spots.
@Suite(.timeLimit(.minutes(15))) struct WebHoursTests {
  private static func path(_ ids: [String], _ more: String = "") -> String {
    "/api/hours?ids=\(ids.map(\.escaped).joined(separator: ","))\(more)"
  }

  @Test func whatIsStoredIsThereAtOnceAndTheRestIsWaitedFor() async throws {
    let server = try StandInServer()
    let url = try await server.start()
    try await TestWeb.run(provider: OpenMeteoProvider(servers: OpenMeteoServers(url))) { web in
      let ids = try TestWeb.spots().map(\.id)
      let first = try #require(try await web.get(Self.path(ids)).json.arrayValue)
      #expect(first.compactMap { $0["spot"]?.stringValue } == ids)
      #expect(first.allSatisfy { $0["instant"]?.isNull == true && $0["fresh"]?.boolValue == false })
      // Without waiting, the weather service is asked for nothing.
      #expect(server.requestCount == 0)
      let waited = try #require(try await web.get(Self.path([ids[2], ids[0]], "&wait=true")).json.arrayValue)
      #expect(waited.compactMap { $0["spot"]?.stringValue } == [ids[2], ids[0]])
      #expect(waited.allSatisfy { $0["temperature_c"]?.doubleValue != nil && $0["points"]?.intValue != nil })
      await server.stop()
      let asked = Date.now
      let again = try #require(try await web.get(Self.path(ids)).json.arrayValue)
      #expect(again.map { $0["fresh"]?.boolValue } == [true, false, true, false, false])
      let instant = try #require(again[0]["instant"]?.stringValue)
      // An hour may end between the question and here.
      let start = try Date(instant, strategy: .iso8601)
      #expect(start <= .now && asked < start.addingTimeInterval(3600))
    }
  }

  @Test func theNumberOfSpotsIsBounded() async throws {
    try await TestWeb.run { web in
      let id = try TestWeb.spots()[0].id
      func status(_ count: Int, _ more: String = "") async throws -> Int {
        try await web.get(Self.path(Array(repeating: id, count: count), more)).status
      }
      #expect(try await status(50) == 200)
      #expect(try await status(51) == 400)
      #expect(try await status(25, "&wait=true") == 200)
      #expect(try await status(26, "&wait=true") == 400)
      #expect(try await web.get("/api/hours").status == 400)
      #expect(try await web.get("/api/hours?ids=\(id.escaped)&wait=maybe").status == 400)
      #expect(try await web.get(Self.path(["nobody", id])).json.arrayValue?.count == 1)
      #expect(try await web.get("/api/hours?ids=nobody").json.arrayValue?.isEmpty == true)
    }
  }

  @Test func aCacheOnlyServerAsksForNothing() async throws {
    var options = WebOptions()
    (options.policy, options.waitingPolicy) = (.cacheOnly, .cacheOnly)
    let server = try StandInServer()
    let url = try await server.start()
    try await TestWeb.run(options, provider: OpenMeteoProvider(servers: OpenMeteoServers(url))) { web in
      let answer = try await web.get(Self.path([try TestWeb.spots()[0].id], "&wait=true"))
      #expect(answer.json.arrayValue?.first?["problem"]?.stringValue == WeatherProblem.notStored.description)
      #expect(answer.headers["cache-control"] == "no-store")
      #expect(server.requestCount == 0)
    }
    await server.stop()
  }
}
