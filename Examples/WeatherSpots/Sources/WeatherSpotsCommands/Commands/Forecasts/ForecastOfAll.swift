import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

/// Forecasts of all spots, written as one line each in the order of the spots, with the failures at the end.
struct ForecastOfAll {
  let weather: WeatherService
  let day: LocalDay?
  let policy: FetchPolicy
  let json: Bool
  let style: CardStyle
  let limit: Int?

  /// Number of spots fetched at a time, which is as many as four batched requests hold.
  ///
  /// Requests have a separate limit.
  static let width = 4 * OpenMeteoProvider.placesPerRequest
  /// Greatest distance between the first unwritten spot and the last spot begun.
  ///
  /// It bounds the finished lines that wait in memory for one slow spot.
  static let window = 2 * width

  private enum Line: Sendable {
    case report(ForecastReport, SpotWeather, isStored: Bool)
    case failure(NoForecastReport, WeatherProblem)
  }

  func run(_ storage: SpotStore) async throws {
    let found = try await storage.allSpots()
    let spots = limit.map { Array(found.prefix($0)) } ?? found
    guard !spots.isEmpty else {
      if !json { try writeText("No spots.\n") }
      return
    }
    // The width of the name column is fixed before the first forecast arrives, since lines are written as soon as they are ready.
    let longest = spots.map(\.name.withoutControls.columns).max() ?? 0
    let width = style.isLimited ? min(30, longest) : longest
    var bar = ProgressBar("Forecasts")
    var (failed, stale, unstored): ([String], [WeatherProblem?], Int) = ([], [], 0)
    var (stored, withoutSea): ([(Spot, LocalDay, Date)], [WeatherProblem]) = ([], [])
    var (begun, written) = (0, 0)
    // Forecasts arrive in any order and are written in the order of the spots.
    var done: [Int: Line] = [:]
    try await withThrowingTaskGroup(of: (Int, Line).self) { group in
      func begin() {
        // A finished line leaves its place in `width` to another spot, but keeps its place in `window` until it is written.
        while begun < spots.count, begun - written - done.count < Self.width, begun - written < Self.window {
          let (index, spot) = (begun, spots[begun])
          group.addTask { (index, try await line(spot)) }
          begun += 1
        }
      }
      begin()
      while let (index, line) = try await group.next() {
        done[index] = line
        bar.show(Double(written + done.count) / Double(spots.count))
        while let line = done.removeValue(forKey: written) {
          // The bar stands on the terminal's current line and would be mixed with the text.
          bar.finish()
          try write(line, width)
          switch line {
          case .report(let report, let weather, let isStored):
            if report.stale { stale.append(weather.hourly.problem) }
            // A forecast that is stored now may be evicted by a later one of this run, so each is checked again at the end.
            if isStored, let hours = weather.hourly.cached {
              stored.append((weather.spot, weather.day, hours.fetchedAt))
            } else {
              unstored += 1
            }
            if case .unavailable(let problem) = weather.marine { withoutSea.append(problem) }
          case .failure(let report, let problem): failed.append("\n  \(report.spot): \(problem)")
          }
          written += 1
        }
        begin()
      }
    }
    bar.finish()
    // Without requests there was nothing to store.
    if policy != .cacheOnly { try await tellWhatIsNotKept(stored, unstored, of: spots.count) }
    if let problem = withoutSea.mostTelling { note("\(withoutSea.count) of \(spots.count) forecasts are without the sea: \(problem)") }
    try end(failed, stale, of: spots.count)
  }

  /// Reports the number of forecasts that are not on the disk, including those evicted by later forecasts.
  private func tellWhatIsNotKept(_ stored: [(Spot, LocalDay, Date)], _ unstored: Int, of count: Int) async throws {
    var gone = unstored
    for (spot, day, fetchedAt) in stored where await !weather.hasHours(of: spot, on: day, fetchedAt: fetchedAt) { gone += 1 }
    if gone > 0 { note("\(gone) of \(count) forecasts could not be stored: \(weather.storageProblem ?? "there is no room for all")") }
  }

  private func line(_ spot: Spot) async throws -> Line {
    let forecast = try await weather.forecast(for: spot, on: day, policy: policy)
    guard let report = ForecastReport(forecast) else {
      // A day that the zone skipped has no problem of the weather service, so its own message is shown.
      let problem =
        (forecast.day.exists(in: spot.zone) ? forecast.hourly.problem : nil)
        ?? WeatherProblem(Failure(noForecast: forecast).message, "no forecast", isTransient: false)
      return .failure(NoForecastReport(forecast, provider: weather.provider.name, problem), problem)
    }
    return .report(report, forecast, isStored: await weather.isStored(forecast))
  }

  private func write(_ line: Line, _ width: Int) throws {
    switch line {
    case .report(let report, let weather, _): json ? try writeJSON(report) : try writeTable(weather.line(nameColumns: width, style) + "\n")
    case .failure(let report, _):
      if json {
        try writeJSON(report)
      } else {
        try writeTable("\(report.spot.withoutControls.padded(toColumns: width))  no forecast\n")
      }
    }
  }

  private func end(_ failed: [String], _ stale: [WeatherProblem?], of count: Int) throws {
    if let reason = stale.compactMap({ $0 }).mostTelling {
      note("\(stale.count) of \(count) forecasts are only the last known ones: \(reason)")
    } else if !stale.isEmpty {
      note("\(stale.count) of \(count) forecasts are only the last known ones")
    }
    if !failed.isEmpty { note("\(failed.count) of \(count) spots have no forecast:\(failed.joined())") }
    // A missing forecast outranks a stale one: the exit code names the worst result.
    if !failed.isEmpty { throw ExitCode(Outcome.noForecast.rawValue) }
    if !stale.isEmpty { throw ExitCode(Outcome.stale.rawValue) }
  }
}

extension [WeatherProblem] {
  /// The first problem that came with an answer, or else the first reason for sending no request.
  fileprivate var mostTelling: WeatherProblem? { first(where: \.isOfAnswer) ?? first }
}
