import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Forecast: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the forecast of a spot, of a point, or of all spots.",
    discussion: """
      The forecast comes from Open-Meteo (free for non-commercial use, CC BY 4.0) unless --provider names another. Fetched data are cached \
      by square kilometre and day: the conditions of the moment are fresh for ten minutes, hours and days for an hour, the sea for three \
      hours. The day is the spot's own, noon is noon there; a day that its zone skipped is refused. Without a network the last known \
      forecast is shown for up to two days, marked as stale, with its age (exit code 4); if there is none, the exit code is 69.

      With --all there is one line for each spot, in the order of their names, written when its forecast is stored; failures are listed at the \
      end. At most four requests run at a time, each for up to 25 spots of Open-Meteo. If the disk is full, forecasts are shown without being \
      stored, and the end says how many and why. --limit takes only the first spots.

      A host that asks for time (Retry-After) gets no request before that time, in later runs either; less than 5 seconds are not remembered, \
      and more than a day counts as a day. A refused key is not used for fifteen minutes. After five failures in a row a service gets no \
      request for half a minute. Data and failures of a server of --api are kept apart from those of other servers; with --policy cache-only \
      and no --api the newest stored data of any server are shown.

      Warnings that cannot be refreshed are shown as last known, with their age, for as long as they hold, and for at most 48 hours.

      Four fifths of Open-Meteo's limits by the minute, the hour and the day are used: so much at once, which comes back evenly. More than \
      some 110 spots at once may reach the limit of the minute. Each run of the program counts for itself: several runs together may exceed \
      the limits.

      WeatherKit needs a key of an Apple developer team: WEATHERKIT_KEY_FILE is the file AuthKey_….p8, which only its owner may be able \
      to read, WEATHERKIT_KEY_ID and WEATHERKIT_TEAM_ID are Apple's ten characters, WEATHERKIT_SERVICE_ID is the name of the service.
      """)

  @Argument(help: "The name or the id of a spot, or a point LAT,LON.")
  var name: String?

  @Flag(help: "All spots.")
  var all = false

  @Option(help: ArgumentHelp("With --all, only this number of spots, the first by name.", valueName: "count"))
  var limit: Int?

  @Option(
    help: ArgumentHelp("The first day, in the spot's own zone. (default: today there)", valueName: "yyyy-MM-dd"), transform: dayArgument)
  var day: LocalDay?

  @Option(help: ArgumentHelp("The number of days, 1 to 16.", valueName: "count"))
  var days = 1

  @Flag(help: "Every hour of the days.")
  var hourly = false

  @Flag(help: "The sea hour by hour.")
  var marine = false

  @Flag(help: "Sun and moon of each day.")
  var astronomy = false

  @Option(
    help: ArgumentHelp(
      "The zone of a point LAT,LON. (default: that of the nearest spot within 25 km, else that of the geocoding service)", valueName: "zone"
    ))
  var zone: String?

  @Option(help: ArgumentHelp("The units that are shown: metric or imperial. JSON has metric ones.", valueName: "system"))
  var units = Settings.units

  @OptionGroup var textOptions: TextOptions
  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard all != (name != nil) else { throw ValidationError("Give a name, a point LAT,LON, or --all.") }
    guard all || limit == nil else { throw ValidationError("--limit needs --all.") }
    guard limit.map({ $0 > 0 }) ?? true else { throw ValidationError("--limit takes a number from 1.") }
    guard (1...16).contains(days) else { throw ValidationError("--days takes 1 to 16.") }
    guard zone.map({ TimeZone.named($0) != nil }) ?? true else { throw ValidationError("--zone takes a zone such as Europe/Paris.") }
    // A point outside the earth must end as a usage error before the store is opened.
    if let name, LocationArgument.isPoint(name) { _ = try point(name) }
  }

  func execute() async throws {
    let isPoint = name.map(LocationArgument.isPoint) ?? false
    // A point needs no spots, and its forecast and zone are cached in a store. A name without a store cannot be found.
    try await globals.withStore(creating: isPoint) { storage in
      // A person waits for a single spot and can repeat the command. Among many spots one brief failure would spoil the run.
      let retry = all ? RetryPolicy(attempts: 2, cap: .seconds(5)) : .never
      try await options.withWeather(storage, retry: retry, gathers: all) { weather in
        if let name {
          try await show(try await LocationArgument(text: name, zone: zone).spot(storage, options), weather)
        } else {
          try await ForecastOfAll(
            weather: weather, day: day, policy: options.fetchPolicyForMany, json: globals.json, style: textOptions.style(units: units),
            limit: limit
          ).run(storage)
        }
      }
    }
  }

  private func show(_ spot: Spot, _ weather: WeatherService) async throws {
    // A day that the spot's zone skipped is refused before any request is sent.
    try day?.check(in: spot.zone)
    let forecast = try await weather.forecast(for: spot, on: day, days: days, policy: options.fetchPolicy)
    guard let report = ForecastReport(forecast, showsHours: hourly || marine, showsAstronomy: astronomy) else {
      // The age distinguishes a stored forecast that is too old from none at all.
      throw Failure(noForecast: forecast, age: await weather.ageOfStored(for: spot, on: forecast.day))
    }
    if let problem = report.problem { note(problem) }
    if globals.json {
      try writeJSON(report)
    } else {
      let details: [(SpotWeather.Detail, Bool)] = [(.hours, hourly), (.sea, marine), (.sky, astronomy)]
      try writeText(forecast.card(textOptions.style(units: units), with: details.filter(\.1).map(\.0)))
    }
    if report.stale { throw ExitCode(Outcome.stale.rawValue) }
  }
}

extension Failure {
  /// Creates the failure that says why there is no forecast to show.
  ///
  /// - Parameter age: Age of the stored forecast, if there is one.
  init(noForecast weather: SpotWeather, age: Duration? = nil) {
    // A skipped day has no forecast from any provider, so it is a usage error and no failure of the service.
    do throws(SkippedDay) { try weather.day.check(in: weather.spot.zone) } catch {
      self.init(error)
      return
    }
    let stored = age.map { "the stored one is \(ageText(seconds: Int($0 / .seconds(1)))) old, too old to be shown" }
    switch weather.hourly {
    case .available: self.init(.noForecast, "the weather service has no forecast for \(weather.day)")
    case .noCoverage: self.init(.noForecast, "no forecast: the weather service has no data for this place")
    case .unsupported: self.init(.noForecast, "no forecast: the provider does not offer one for this place")
    case .unavailable(let problem): self.init(lacking: "forecast", problem, nothing: stored ?? "none is stored")
    }
  }
}
