import Foundation
public import Larder

/// Made-up warnings for trying the pipeline out without a network; each says that it is one.
///
/// There is one everywhere on every UTC day, revised at noon.
public struct ExerciseAlerts: AlertSource {
  private let clock: any WallClock

  /// Makes a source.
  public init(clock: any WallClock) { self.clock = clock }

  /// Answers for the present day.
  public func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    let now = clock.now
    let day = LocalDay(containing: now, in: .gmt)
    let (start, end) = (day.interval(in: .gmt).start, day.interval(in: .gmt).end)
    let isRevised = now >= start + 43_200
    return .alerts([
      WeatherAlert(
        id: "exercise-\(day)-\(cluster.id.cell)", summary: "Exercise: wind\(isRevised ? ", update 1" : "")",
        source: "weather-spots, made up", severity: "moderate", issued: isRevised ? start + 43_200 : start,
        effective: start, expires: end)
    ])
  }
}
