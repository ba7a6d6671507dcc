import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Icon: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Fetches the icon of the weather at a spot now, and keeps it.",
    discussion: """
      The URL of icons has to be set once, with {icon} in place of the name: weather-spots config set icon-url \
      'https://example.org/icons/{icon}.png'. The names are those of the manual, such as rain or clear-night, by the WMO code of the \
      weather and by whether the Sun is up. The weather is that of the moment, or else the nearest hour of the forecast, and is fetched \
      and cached as `forecast` does. An icon that was fetched before comes from this machine, without a request; it is kept with the \
      photos, under their limits. If the weather is only the last known one, the exit code is 4; without weather or icon, 69.
      """)

  @Argument(help: "The name or the id of a spot, or a point LAT,LON.")
  var name: String

  @Option(
    help: ArgumentHelp(
      "The zone of a point LAT,LON. (default: that of the nearest spot within 25 km, else that of the geocoding service)", valueName: "zone"
    ))
  var zone: String?

  @Option(help: ArgumentHelp("Also write the icon to a file.", valueName: "file"))
  var output: String?

  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard zone.map({ TimeZone.named($0) != nil }) ?? true else { throw ValidationError("--zone takes a zone such as Europe/Paris.") }
    if LocationArgument.isPoint(name) { _ = try point(name) }
  }

  func execute() async throws {
    let template = try Self.template()
    let file = try output.map { try OutputFile($0, beside: try globals.place) }
    let shown = try await globals.withStore(creating: LocationArgument.isPoint(name)) { storage in
      let spot = try await LocationArgument(text: name, zone: zone).spot(storage, options)
      let weather = try await options.withWeather(storage) { weather in try await self.weather(of: spot, weather) }
      guard let icon = WeatherIcon(weather.code, at: spot.coordinate, options.clock.now, in: spot.zone), let url = template.url(of: icon)
      else { throw Failure(.noForecast, "no icon: there is none for weather code \(weather.code.rawValue)") }
      return Shown(spot: spot, icon: icon, weather: weather, image: try await image(url))
    }
    try file?.write(shown.image.data)
    try write(shown)
  }

  private static func template() throws -> IconTemplate {
    guard let setting = try Settings.load()[.iconURL], let template = IconTemplate(setting.value) else {
      throw Failure(
        .usage, "icon-url is not set; set it, such as: weather-spots config set icon-url 'https://example.org/icons/{icon}.png'")
    }
    return template
  }

  /// Returns the kind of weather of the moment, or else of the nearest hour.
  private func weather(of spot: Spot, _ service: WeatherService) async throws -> Weather {
    let (current, hourly) = try await service.weather(for: spot, policy: options.fetchPolicy, including: .current, .hourly)
    if let cached = current.cached, let code = cached.value.conditions.code { return Weather(code, cached, current.problem) }
    let now = options.clock.now
    let nearest = hourly.value?.hours.filter { abs($0.instant.timeIntervalSince(now)) <= 1800 && $0.code != nil }
      .min { abs($0.instant.timeIntervalSince(now)) < abs($1.instant.timeIntervalSince(now)) }
    if let cached = hourly.cached, let code = nearest?.code { return Weather(code, cached, hourly.problem) }
    if let problem = hourly.problem ?? current.problem { throw Failure(lacking: "icon", problem, nothing: "no weather is stored") }
    throw Failure(.noForecast, "no icon: \(service.provider.name) has no WMO weather code here")
  }

  private func image(_ url: URL) async throws -> LoadedImage {
    try await globals.withImages(timeout: options.limit) { images in
      do { return try await images.image(from: url) } catch { throw Failure(.noForecast, "no icon: \(error)") }
    }
  }

  private func write(_ shown: Shown) throws {
    let (image, weather) = (shown.image, shown.weather)
    if let problem = weather.problem { note(problem.description) }
    if globals.json {
      let row: JSONRow = [
        "spot": shown.spot.id, "icon": shown.icon.name, "weatherCode": weather.code.rawValue, "ageSeconds": weather.ageSeconds,
        "stale": weather.isStale, "url": image.url, "format": image.format, "bytes": image.data.count, "origin": image.origin,
        "kept": image.storageError == nil,
      ]
      try writeJSON(row)
    } else {
      let age = weather.isStale ? ", weather \(ageText(seconds: weather.ageSeconds)) old" : ""
      let name = shown.spot.name
      try writeText("\(name): \(shown.icon.name)\(age), \(image.format.name), \(image.data.count) bytes, from \(image.origin.words).\n")
    }
    if let error = image.storageError {
      let failure = Failure(error)
      note("the icon is not kept: \(failure.message)")
      throw ExitCode(failure.outcome.rawValue)
    }
    if weather.isStale { throw ExitCode(Outcome.stale.rawValue) }
  }

  /// The kind of weather, and how old that is.
  private struct Weather {
    let code: WeatherCode
    let ageSeconds: Int
    let isStale: Bool
    let problem: WeatherProblem?

    init<Value>(_ code: WeatherCode, _ cached: Cached<Value>, _ problem: WeatherProblem?) {
      self.code = code
      self.problem = problem
      (ageSeconds, isStale) = (cached.ageSeconds, cached.isOld)
    }
  }

  private struct Shown {
    let spot: Spot
    let icon: WeatherIcon
    let weather: Weather
    let image: LoadedImage
  }
}
