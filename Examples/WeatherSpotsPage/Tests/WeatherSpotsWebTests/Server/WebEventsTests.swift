import Foundation
import Larder
import Testing
import WeatherSpotsKit

@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebEventsTests {
  @Test func whatAnotherProcessSavesIsTold() async throws {
    try await TestWeb.run { web in
      let events = try await EventReader.open(web)
      let other = try await SpotStore(file: web.file)
      try await other.change(["Brest @48.39029,-4.48628"]) { try $0.visited() }
      let event = try #require(try await events.next())
      #expect(event.name == "spots" && event.id == "2")
      #expect(event.spots == ["Brest"])
      #expect(event.json["changes"]?[0]?["spot"]?["revision"]?.intValue == 2)
      #expect(event.json["changes"]?[0]?["spot"]?["visits"]?.intValue == 1)
      try await other.store.close()
    }
  }

  @Test func aStreamGoesOnWhereTheLastOneEnded() async throws {
    try await TestWeb.run { web in
      let spots = try TestWeb.spots()
      try await web.storage.change([spots[1].id]) { try $0.visited() }
      try await web.storage.remove(spots[0].id)
      // Both are told in one event, with the newest revision; what was before is not told.
      for (query, headers) in [("?since=1", [:]), ("?since=77", ["Last-Event-ID": "1"])] {
        let events = try await EventReader.open(web, query, headers: headers)
        let event = try #require(try await events.next())
        #expect(event.id == "3")
        #expect(Set(event.spots) == ["Annecy", "(\(spots[0].id))"])
      }
      let events = try await EventReader.open(web, "?since=3")
      try await web.storage.change([spots[2].id]) { try $0.visited() }
      let event = try #require(try await events.next())
      #expect(event.spots == ["Jogashima"])
    }
  }

  @Test func whoIsTooFarAwayBeginsAnew() async throws {
    try await TestWeb.run { web in
      let events = try await EventReader.open(web, "?since=99")
      let event = try #require(try await events.next())
      #expect(event.name == "reset" && event.id == "1")
      try await web.storage.change([try TestWeb.spots()[2].id]) { try $0.visited() }
      #expect(try await events.next()?.id == "2")
    }
  }

  @Test func theEndOfTheSpotThatIsWatchedIsTold() async throws {
    try await TestWeb.run { web in
      let spot = try TestWeb.spots()[0]
      try await web.storage.remove(spot.id)
      let events = try await EventReader.open(web, "?since=1&forecast=\(spot.id.escaped)")
      #expect(try await events.next()?.spots == ["(\(spot.id))"])
    }
  }

  @Test func revisionsOfAnotherStoreSayNothing() async throws {
    try await TestWeb.run { web in
      let list = try await web.get("/api/spots")
      let store = try #require(list.headers["larder-store"])
      #expect(list.headers["etag"] == "W/\"\(store)-1\"")
      let other = try await EventReader.open(web, "?since=1&store=other")
      #expect(try await other.next()?.name == "reset")
      let same = try await EventReader.open(web, "?since=1&store=\(store)")
      try await web.storage.change([try TestWeb.spots()[0].id]) { try $0.visited() }
      #expect(try await same.next()?.name == "spots")
    }
  }

  @Test func manyChangesAreFewEvents() async throws {
    var options = WebOptions()
    options.gathering = .milliseconds(300)
    try await TestWeb.run(options) { web in
      let events = try await EventReader.open(web)
      let id = try TestWeb.spots()[2].id
      for _ in 0..<50 { try await web.storage.change([id]) { try $0.visited() } }
      var (count, last) = (0, 0)
      while last < 50 {
        let event = try #require(try await events.next())
        last = try #require(event.json["changes"]?[0]?["spot"]?["visits"]?.intValue)
        count += 1
      }
      #expect(count < 50)
    }
  }

  @Test func aForecastThatComesInIsTold() async throws {
    try await TestWeb.run { web in
      let id = try TestWeb.spots()[0].id
      let events = try await EventReader.open(web, "?forecast=\(id.escaped)")
      let other = try await SpotStore(file: web.file)
      let weather = try await WeatherService(other, provider: OpenMeteoProvider.recorded(), limits: .openMeteo())
      _ = try await weather.forecast(for: try TestWeb.spots()[0], days: 7)
      let event = try #require(try await events.next())
      #expect(event.name == "forecast" && event.id == nil)
      #expect(event.json["spot"]?.stringValue == id)
      await weather.settled()
      try await other.store.close()
    }
  }

  @Test func streamsAreBoundedAndEndWithTheirClients() async throws {
    var options = WebOptions()
    options.streams = 1
    try await TestWeb.run(options) { web in
      let first = try await EventReader.open(web)
      let second = try await web.get("/api/events")
      #expect(second.status == 503)
      #expect(second.headers["retry-after"] == "5")
      try first.close()
      // The place is free as soon as the server has seen that the client is gone.
      while try await web.get("/metrics").text.contains("weather_spots_streams 1") { await Task.yield() }
      let third = try await EventReader.open(web)
      await web.beginShutdown()
      #expect(try await third.next() == nil)
    }
  }
}
