import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

/// The forecasts of all spots: a line for each as soon as it and all before it are there, and what failed at the end.
struct ForecastOfAll {
  let weather: WeatherService
  let day: LocalDay?
  let policy: FetchPolicy
  let json: Bool
  let style: CardStyle
  let limit: Int?

  /// The number of spots that are worked on at a time: as many as four calls hold; requests have a limit of their own.
  static let width = 4 * OpenMeteoProvider.placesPerRequest
  /// The number of spots that may be begun behind the first whose line is not written yet: so many lines wait for a slow one at most.
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
    let longest = spots.map(\.name.withoutControls.columns).max() ?? 0
    let width = style.isLimited ? min(30, longest) : longest
    var bar = ProgressBar("Forecasts")
    var (failed, stale, unstored): ([String], [WeatherProblem?], Int) = ([], [], 0)
    var (stored, withoutSea): ([(Spot, LocalDay, Date)], [WeatherProblem]) = ([], [])
    var (begun, written) = (0, 0)
    var done: [Int: Line] = [:]
    try await withThrowingTaskGroup(of: (Int, Line).self) { group in
      func begin() {
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
          bar.finish()
          try write(line, width)
          switch line {
          case .report(let report, let weather, let isStored):
            if report.stale { stale.append(weather.hourly.problem) }
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
    if policy != .cacheOnly { try await tellWhatIsNotKept(stored, unstored, of: spots.count) }
    if let problem = withoutSea.mostTelling { note("\(withoutSea.count) of \(spots.count) forecasts are without the sea: \(problem)") }
    try end(failed, stale, of: spots.count)
  }

  /// Says how many forecasts are not on the disk, those included that had to make room for others since.
  private func tellWhatIsNotKept(_ stored: [(Spot, LocalDay, Date)], _ unstored: Int, of count: Int) async throws {
    var gone = unstored
    for (spot, day, fetchedAt) in stored where await !weather.hasHours(of: spot, on: day, fetchedAt: fetchedAt) { gone += 1 }
    if gone > 0 { note("\(gone) of \(count) forecasts could not be stored: \(weather.storageProblem ?? "there is no room for all")") }
  }

  private func line(_ spot: Spot) async throws -> Line {
    let forecast = try await weather.forecast(for: spot, on: day, policy: policy)
    guard let report = ForecastReport(forecast) else {
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
    if !failed.isEmpty { throw ExitCode(Outcome.noForecast.rawValue) }
    if !stale.isEmpty { throw ExitCode(Outcome.stale.rawValue) }
  }
}

extension [WeatherProblem] {
  /// The first that a request gave; where there was no request, the first reason for that.
  fileprivate var mostTelling: WeatherProblem? { first(where: \.isOfAnswer) ?? first }
}
