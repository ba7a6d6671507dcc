import ArgumentParser
import Foundation
import WeatherSpotsKit

struct Forecast: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the forecast of a spot for a day.",
    discussion: """
      The forecast comes from Open-Meteo (free for non-commercial use, CC BY 4.0) and is kept for an hour by square kilometre and day. The \
      day is the spot's own, noon is noon there. Without a network the last known forecast is shown, marked as stale, with its age \
      (exit code 4); if there is none, the exit code is 69.
      """)

  @Argument(help: "The name or the id of the spot.")
  var name: String

  @Option(help: ArgumentHelp("The day in the spot's own zone. (default: today there)", valueName: "yyyy-MM-dd"), transform: Self.day)
  var day: LocalDay?

  @Option(help: ArgumentHelp("Another server that answers /v1/forecast and /v1/marine.", valueName: "url"))
  var api: String?

  @Flag(help: "Ask the service even if a fresh forecast is stored.")
  var refresh = false

  @Option(help: ArgumentHelp("How long to wait for an answer.", valueName: "seconds"))
  var timeout = 10.0

  @Option(
    help: ArgumentHelp("Take this instant for the present one, to try out what gets stale when.", valueName: "yyyy-MM-ddTHH:mm:ssZ"),
    transform: Self.instant)
  var now: Date?

  @OptionGroup var globals: Globals

  func validate() throws {
    guard (0.1...600).contains(timeout) else { throw ValidationError("--timeout takes 0.1 to 600 seconds.") }
    _ = try servers()
  }

  func run() async throws {
    try await reportingFailures {
      let client = OpenMeteoClient(servers: try servers(), timeout: .milliseconds(Int(timeout * 1000)))
      let now = now ?? Date()
      let (answer, report) = try await globals.withStore { storage in
        let spot = try await storage.spot(named: name)
        let day = day ?? LocalDay(containing: now, in: spot.zone)
        let answer = try await Forecasts(storage, client: client).forecast(for: spot, on: day, at: now, refresh: refresh)
        return (answer, ForecastReport(answer, of: spot, at: now))
      }
      guard let report else { throw Failure(.noForecast, "the weather service has no forecast for \(answer.forecast.id.day)") }
      if let problem = report.problem { note(problem) }
      if globals.json { try writeJSON(report) } else { try writeText(report.card) }
      if report.stale { throw ExitCode(Outcome.stale.rawValue) }
    }
  }

  private func servers() throws -> OpenMeteoClient.Servers {
    guard let api else { return .openMeteo }
    guard let url = URL(string: api), ["http", "https"].contains(url.scheme), url.host() != nil else {
      throw ValidationError("--api takes a URL such as http://127.0.0.1:8080.")
    }
    return OpenMeteoClient.Servers(url)
  }

  private static func day(_ text: String) throws -> LocalDay {
    guard let day = LocalDay(text) else { throw ValidationError("A day is written yyyy-MM-dd.") }
    return day
  }

  private static func instant(_ text: String) throws -> Date {
    do { return try Date(text, strategy: .iso8601) } catch { throw ValidationError("An instant is written yyyy-MM-ddTHH:mm:ssZ.") }
  }
}
