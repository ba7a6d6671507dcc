import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Widget: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the forecast that another process has fetched, with its age.",
    discussion: """
      As a widget does beside its app: it opens the store to read only, next to the process that writes it, sends no request, waits for no \
      lock but up to two seconds while another process recovers the log after a crash, and changes nothing. Needs a SQLite store. \
      If the forecast is older than it should be, the exit code is 4; if none is stored, 69.
      """)

  @Argument(help: "The name or the id.")
  var name: String

  @OptionGroup var time: TimeOption

  @OptionGroup var textOptions: TextOptions
  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let file = try globals.file(creating: false)
    guard SpotStore.isShared(file) else {
      throw Failure(.usage, "`widget` needs a .sqlite store: a JSON store has one user at a time")
    }
    // A widget shares the file with its app and must never write to it, so `withStore` is not used.
    let storage = try await SpotStore(readingBeside: file)
    do {
      try await show(storage)
    } catch {
      // Closed after a failure too, as `withStore` does.
      try await storage.store.close()
      throw error
    }
    try await storage.store.close()
  }

  private func show(_ storage: SpotStore) async throws {
    let spot = try await storage.spot(named: name)
    let stored = try await StoredWeather(storage, clock: time.clock)
    // The widget shows any provider's forecast, since another process chose the provider.
    guard let weather = try await stored.forecast(for: spot, of: StoredProvider.all), let report = ForecastReport(weather) else {
      throw Failure(.noForecast, "no forecast of this spot is stored for today; `weather-spots forecast` fetches one")
    }
    if globals.json { try writeJSON(report) } else { try writeText(weather.card(textOptions.style(units: Settings.units))) }
    if report.stale { throw ExitCode(Outcome.stale.rawValue) }
  }
}
