import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

/// The forecasts of all spots: a line for each as soon as it and all before it are stored, and what failed at the end.
struct ForecastOfAll {
  let weather: WeatherService
  let day: LocalDay?
  let policy: FetchPolicy
  let json: Bool
  let style: CardStyle

  /// How many spots are worked on at a time; requests have a limit of their own.
  static let width = 8

  private enum Line: Sendable {
    case report(ForecastReport, SpotWeather)
    case failure(String, WeatherProblem)
  }

  func run(_ storage: SpotStore) async throws {
    let spots = try await storage.allSpots()
    guard !spots.isEmpty else {
      if !json { try writeText("No spots.\n") }
      return
    }
    let width = min(30, spots.map(\.name.count).max() ?? 0)
    var bar = ProgressBar("Forecasts")
    var (failed, stale, written): ([String], [ForecastReport], Int) = ([], [], 0)
    var done: [Int: Line] = [:]
    try await withThrowingTaskGroup(of: (Int, Line).self) { group in
      var rest = spots.enumerated().makeIterator()
      func startNext() {
        guard let (index, spot) = rest.next() else { return }
        group.addTask { (index, try await line(spot)) }
      }
      for _ in 0..<Self.width { startNext() }
      while let (index, line) = try await group.next() {
        startNext()
        done[index] = line
        bar.show(Double(written + done.count) / Double(spots.count))
        while let line = done.removeValue(forKey: written) {
          bar.finish()
          try write(line, width)
          switch line {
          case .report(let report, _) where report.stale: stale.append(report)
          case .report: break
          case .failure(let name, let problem): failed.append("\n  \(name): \(problem)")
          }
          written += 1
        }
      }
    }
    bar.finish()
    try end(failed, stale, of: spots.count)
  }

  private func line(_ spot: Spot) async throws -> Line {
    let forecast = try await weather.forecast(for: spot, on: day, policy: policy)
    guard let report = ForecastReport(forecast) else {
      return .failure(
        spot.name, forecast.hourly.problem ?? WeatherProblem(Failure(noForecast: forecast).message, "no forecast", isTransient: false))
    }
    return .report(report, forecast)
  }

  private func write(_ line: Line, _ width: Int) throws {
    switch line {
    case .report(let report, let weather): json ? try writeJSON(report) : try writeText(weather.line(nameColumns: width, style) + "\n")
    case .failure(let name, let problem):
      if json {
        try writeJSON(["spot": name, "problem": problem.description])
      } else {
        try writeText("\(name.padding(toLength: max(width, name.count), withPad: " ", startingAt: 0))  no forecast\n")
      }
    }
  }

  private func end(_ failed: [String], _ stale: [ForecastReport], of count: Int) throws {
    if let reason = stale.compactMap(\.problem).first {
      note("\(stale.count) of \(count) forecasts are only the last known ones: \(reason)")
    } else if !stale.isEmpty {
      note("\(stale.count) of \(count) forecasts are only the last known ones")
    }
    if !failed.isEmpty { note("\(failed.count) of \(count) spots have no forecast:\(failed.joined())") }
    if !failed.isEmpty { throw ExitCode(Outcome.noForecast.rawValue) }
    if !stale.isEmpty { throw ExitCode(Outcome.stale.rawValue) }
  }
}
