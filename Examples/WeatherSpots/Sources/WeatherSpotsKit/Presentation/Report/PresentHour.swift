import Astronomy
import Foundation
public import Larder

/// The weather of one spot in the present hour, as a row of a JSON list of spots.
///
/// Names of values end in their units. Unknown values are written as `null`.
public struct PresentHour: Encodable, Sendable {
  /// Whether the hours and the sea are fresh, or not offered here, so that another request would bring nothing newer.
  public let isFresh: Bool
  private let row: JSONRow

  init(_ spot: Spot, _ hourly: WeatherReading<HourlyForecast>, _ marine: WeatherReading<MarineForecast>, at now: Date) {
    let hour = hourly.value.flatMap { Self.hour(at: now, in: $0.merged(with: marine.value)) }
    // A forecast can lack the hour without an error, so the row needs a reason of its own.
    let nothing = hourly.value == nil ? "the weather service has no forecast for this place" : "the stored forecast does not have this hour"
    let isUp = hour.map {
      Astronomy(at: spot.coordinate, on: LocalDay(containing: now, in: spot.zone), in: spot.zone).sun.isUp(at: $0.instant)
    }
    isFresh = hourly.isFresh && marine.isFresh
    row = [
      "spot": spot.id, "instant": hour.map { $0.instant.formatted(.iso8601) },
      "time": hour.map { TimeLabel.clock($0.instant, in: spot.zone) },
      "weather": hour?.words, "weatherCode": hour?.code?.rawValue, "night": isUp.map(!), "temperatureC": hour?.temperatureCelsius,
      "windKmh": hour?.windKilometersPerHour, "gustKmh": hour?.gustKilometersPerHour, "windFromDegrees": hour?.windDegrees,
      "waveM": hour?.sea?.waveMeters, "waveFromDegrees": hour?.sea?.waveDegrees, "wavePeriodS": hour?.sea?.wavePeriodSeconds,
      "points": hour.flatMap(Self.points), "fresh": isFresh, "recorded": hourly.value?.provenance.isRecorded,
      "fetchedAt": hourly.cached.map { $0.fetchedAt.formatted(.iso8601) }, "ageSeconds": hourly.cached?.ageSeconds,
      "problem": hour == nil ? hourly.problem?.description ?? nothing : nil,
    ]
  }

  /// Writes every key, with `null` where it has no value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  /// Returns the row of the current hour, with the precipitation and the gusts of that same hour.
  static func hour(at now: Date, in hours: [WeatherHour]) -> WeatherHour? {
    func isOf(_ hour: WeatherHour) -> Bool { hour.instant <= now && now < hour.instant.addingTimeInterval(3600) }
    // A row without values must not stand for the hour.
    guard var hour = hours.last(where: { isOf($0) && $0.hasValues }) else { return nil }
    // A row's precipitation and gusts are those of the hour before it: those of this hour are in the next row.
    let next = hours.first { $0.instant == hour.instant.addingTimeInterval(3600) }
    hour.precipitationMillimeters = next?.precipitationMillimeters
    hour.gustKilometersPerHour = next?.gustKilometersPerHour
    return hour
  }

  /// Returns a score from 0 to 100 for being outside in an hour, or `nil` if the temperature is unknown.
  ///
  /// An hour begins with 100 points. It loses 2 for each °C that the air feels warmer or colder than 22 °C, 1 for each km/h of gusts over
  /// 20, 20 for each mm of rain, and 10 for each metre of waves over 1, but never falls below 0. The wind counts where the gusts are not
  /// known, and the air temperature where the felt one is not. Unknown rain and waves cost nothing. The page states the same.
  static func points(_ hour: WeatherHour) -> Int? {
    guard let felt = hour.apparentCelsius ?? hour.temperatureCelsius else { return nil }
    let gusts = max(0, (hour.gustKilometersPerHour ?? hour.windKilometersPerHour ?? 0) - 20)
    let waves = max(0, (hour.sea?.waveMeters ?? 0) - 1)
    let left = 100 - 2 * abs(felt - 22) - gusts - 20 * (hour.precipitationMillimeters ?? 0) - 10 * waves
    // A gale and a storm of rain give far less than 0, which the page's scale does not have.
    return Int(min(max(left, 0), 100).rounded())
  }
}

extension WeatherService {
  /// Returns the weather of a spot in the present hour.
  ///
  /// A row without the present hour has the reason in `problem`.
  ///
  /// - Throws: `CancellationError`, and no other error.
  public func presentHour(of spot: Spot, policy: FetchPolicy) async throws -> PresentHour {
    let (hourly, marine) = try await weather(for: spot, policy: policy, including: .hourly, .marine)
    return PresentHour(spot, hourly, marine, at: clock.now)
  }
}
