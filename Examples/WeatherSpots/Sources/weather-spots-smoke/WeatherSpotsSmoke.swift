// Calls every public entry of WeatherSpotsKit once, on loopback only. Scripts/smoke.sh builds it as releases are built and runs it: some
// code that is sound in a debug build crashes in an optimised one. It checks little of what comes back; the tests do that.

import Foundation
import Larder
import StandInServer
import WeatherSpotsKit

@main struct WeatherSpotsSmoke {
  static func main() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-smoke-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: directory) } catch { print("left behind: \(directory.path)") } }
    try await images(directory)
    for name in ["spots.sqlite", "spots.json"] { try await spots(directory.appending(path: name)) }
    try await weather(directory.appending(path: "weather.sqlite"))
    try await weatherKit(directory.appending(path: "weatherkit.sqlite"))
    try await alerts(directory)
    sky()
    print("every public entry was called")
  }

  private static func expect(_ isSo: Bool, _ what: String) throws { if !isSo { throw SmokeFailure(what: what) } }

  private static func images(_ directory: URL) async throws {
    let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) + Data(count: 100)
    let paths = (0..<30).map { "/\($0).png" }
    let server = try PictureServer(Dictionary(paths.map { ($0, .whole(png)) }, uniquingKeysWith: { first, _ in first }))
    let url = try await server.start()
    let urls = paths.map { url.appending(path: $0) } + [url.appending(path: "missing.png")]
    for count in [1, 2, 31] {
      let images = await ImageFetcher(store: nil).images(from: urls.suffix(count))
      try expect(images.count == count, "\(count) images were asked for and \(images.count) came")
    }
    let database = ImageDatabase.shared
    try await database.setUp(directory: directory.appending(path: "images"))
    let images = await database.images(from: urls)
    let found = images.values.count { if case .success = $0 { true } else { false } }
    try expect(found == 30, "\(found) of 30 images came")
    let image = try await database.image(from: urls[0])
    _ = try await database.contents()
    _ = try await database.usage()
    await database.removeFromMemory()
    let storage = try await SpotStore(file: directory.appending(path: "photos.sqlite"))
    let spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "Europe/Paris")
    try await storage.spots.save(spot)
    try await storage.add(image, to: spot, at: Date())
    _ = try await storage.albums().loadAll()
    try await storage.remove(spot)
    try await storage.store.close()
    try await database.clear()
    try await database.close()
    await server.stop()
  }

  private static func spots(_ file: URL) async throws {
    let storage = try await SpotStore(file: file)
    let shipped = ShippedSpots.spots
    try await storage.spots.save(contentsOf: shipped)
    try expect(SpotsCSV(Array(Spot.csv(shipped).utf8)).spots.count == shipped.count, "the CSV does not come back")
    _ = try Spot.geoJSON(shipped)
    try expect(try await storage.find(named: shipped[0].name).count == 1, "a spot is not found by its name")
    _ = try await storage.names(near: String(shipped[0].name.dropLast()))
    for order in SpotOrder.allCases { _ = try await storage.spots.fetch(.spots(.init(minimumRating: 0), by: order)) }
    _ = try await storage.spots.fetch(.spots(near: shipped[0].coordinate, within: .kilometers(100)))
    _ = try await storage.spots.matches(.spots(matching: "bar"))
    let page = try await storage.spots.page(.spots(), limit: 10)
    if let next = page.next { _ = try next.token }
    try await storage.store.close()
    _ = try await SpotStore.dryRun(file: file)
  }

  private static func weather(_ file: URL) async throws {
    let server = try StandInServer()
    let url = try await server.start()
    let storage = try await SpotStore(file: file)
    let spots = Array(ShippedSpots.spots.prefix(30))
    try await storage.spots.save(contentsOf: spots)
    let hosts = try await HostStates(storage)
    let servers = OpenMeteoServers(url)
    let provider = OpenMeteoProvider(servers: servers, timeout: .seconds(60), hosts: hosts)
    let service = try await WeatherService(storage, provider: provider, limits: .openMeteo(), gathersPlaces: true)
    _ = await service.estimate(for: spots, policy: .cacheFirst, placesPerCall: 25, perMinute: 480)
    try await withThrowingTaskGroup(of: SpotWeather.self) { group in
      for spot in spots { group.addTask { try await service.forecast(for: spot) } }
      for try await forecast in group {
        guard let report = ForecastReport(forecast, showsHours: true, showsAstronomy: true) else {
          throw SmokeFailure(what: "\(forecast.spot.name) has no forecast")
        }
        _ = try JSONEncoder().encode(report)
        _ = forecast.card(CardStyle(), with: [.hours, .sea, .sky]) + forecast.line(nameColumns: 20, CardStyle(isPlain: true))
        _ = await service.isStored(forecast)
        _ = await service.ageOfStored(for: forecast.spot, on: forecast.day)
      }
    }
    for policy in [FetchPolicy.cacheOnly, .staleWhileRevalidate, .networkFirst(timeout: .seconds(60)), .networkOnly] {
      let (current, hourly, daily, marine, sky) = try await service.weather(
        for: spots[0], days: 3, policy: policy, including: .current, .hourly, .daily, .marine, .astronomy)
      _ = (current.value, hourly.value, daily.value, marine.problem, sky.cached)
      let hour = try await service.presentHour(of: spots[0], policy: policy)
      _ = (hour.isFresh, try JSONEncoder().encode(hour))
    }
    _ = try await service.availability(for: spots[0])
    await service.settled()
    await service.keepCounts(in: storage)
    let geocoding = try await Geocoding(storage, servers: servers, timeout: .seconds(60), limits: .openMeteo(), hosts: hosts)
    _ = try await geocoding.places(.init("Brest"))
    _ = try await geocoding.zone(of: spots[0].coordinate)
    await geocoding.keepCounts(in: storage)
    _ = try await CacheHistory(storage).counts()
    _ = try await CacheOverview(storage, at: Date())
    _ = try await StoredWeather(storage).forecast(for: spots[0], of: StoredProvider.all)
    let recorded = OpenMeteoProvider.recorded()
    let place = ForecastPlace(provider: recorded.name, spots[0].coordinate, timezone: spots[0].timezone)
    let today = LocalDay(containing: Date(), in: place.zone)
    let answer = await recorded.fetch(ProviderRequest(place, from: today, days: 1, [.current, .hourly]))
    if case .failure(let error)? = answer.hourly { throw error }
    _ = try await CacheOverview.clear(Set(CacheOverview.names), of: storage)
    try await storage.store.close()
    let reader = try await SpotStore(readingBeside: file)
    try await reader.store.close()
    await server.stop()
  }

  private static func weatherKit(_ file: URL) async throws {
    let body =
      #"{"forecastHourly":{"metadata":{"expireTime":"2026-07-01T13:00:00Z"},"hours":[{"forecastStart":"2026-07-01T12:00:00Z"}]}}"#
    let server = try LoopbackServer { request in
      if request.path.contains("attribution") { return .init(200, #"{"serviceName":"A service"}"#) }
      return request.path.contains("availability") ? .init(200, #"["forecastHourly"]"#) : .init(200, body)
    }
    let url = try await server.start()
    // The key of RFC 7515's appendix A.3, which everybody knows.
    let pem = """
      -----BEGIN PRIVATE KEY-----
      MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
      H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
      7xO2z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrZIpIyiFiOWt
      -----END PRIVATE KEY-----

      """
    let key = try WeatherKitKey(pem: pem, keyID: "ABC123DEFG", teamID: "TEAM123456", serviceID: "com.example.spots")
    let storage = try await SpotStore(file: file)
    let provider = WeatherKitProvider(key: key, server: url, timeout: .seconds(60), hosts: try await HostStates(storage))
    _ = try await provider.attributionMarks()
    let service = try await WeatherService(storage, provider: provider, limits: .weatherKit())
    _ = try await service.forecast(for: ShippedSpots.spots[0])
    try await storage.store.close()
    await server.stop()
  }

  private static func alerts(_ directory: URL) async throws {
    let clock = SystemClock()
    let storage = try await SpotStore(file: directory.appending(path: "alerts.sqlite"))
    let hook = try LoopbackServer { _ in .init(200, "") }
    let url = try await hook.start()
    let sinks: [any AlertSink] = [
      FileSink(directory.appending(path: "alerts.jsonl")), LineSink(isJSON: true) { _ in }, WebhookSink(url, timeout: .seconds(60)),
    ]
    let watchers = ShippedSpots.spots.prefix(5).flatMap { spot in sinks.map { Watcher(spot, sink: $0.name) } }
    let lock = try AlertLock(beside: directory.appending(path: "alerts.sqlite"))
    let pipeline = AlertPipeline(
      watchers, queue: try await AlertQueue(storage.store), source: ExerciseAlerts(clock: clock), sinks: sinks, clock: clock)
    let report = try await pipeline.round()
    try expect(report.delivered == 15, "\(report.delivered) of 15 notices were delivered")
    _ = try await pipeline.timeUntilNextRound()
    lock.release()
    try await storage.store.close()
    await hook.stop()
    _ = try await AlertSimulation(watchers: 300, duration: .hours(1)).run(around: ShippedSpots.spots)
  }

  private static func sky() {
    for spot in ShippedSpots.spots {
      let astronomy = Astronomy(at: spot.coordinate, on: LocalDay(containing: Date(), in: spot.zone), in: spot.zone)
      _ = astronomy.text()
      _ = Geohash(spot.coordinate, precision: 5).neighbor(north: 1, east: 1)
      _ = WeatherIcon(WeatherCode(rawValue: 61), isDay: true)
    }
    _ = Sparkline.text([1, nil, 3])
    _ = NearNames.names(near: "Brset", in: ["Brest"])
  }
}

/// The expectation that did not hold.
private struct SmokeFailure: Error {
  let what: String
}
