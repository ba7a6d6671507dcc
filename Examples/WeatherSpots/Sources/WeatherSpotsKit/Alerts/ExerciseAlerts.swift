import Foundation
public import Larder

/// A source of made-up warnings, for trying the pipeline without a network.
///
/// Each warning says that it is an exercise.
///
/// Every place has one warning on each UTC day, which is revised at noon.
public struct ExerciseAlerts: AlertSource {
  private let clock: any WallClock

  /// Makes a source.
  public init(clock: any WallClock) { self.clock = clock }

  /// Returns the made-up warning of the present UTC day.
  public func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    let now = clock.now
    let day = LocalDay(containing: now, in: .gmt)
    let (start, end) = (day.interval(in: .gmt).start, day.interval(in: .gmt).end)
    // Noon is always 43,200 s after the start, since a day of UTC has no change to summer time.
    let isRevised = now >= start + 43_200
    return .alerts([
      WeatherAlert(
        // The id stays the same at noon, so that the pipeline sends a revision and not a second warning.
        id: "exercise-\(day)-\(cluster.id.cell)", summary: "Exercise: wind\(isRevised ? ", update 1" : "")",
        source: "weather-spots, made up", severity: "moderate", issued: isRevised ? start + 43_200 : start,
        effective: start, expires: end)
    ])
  }
}
