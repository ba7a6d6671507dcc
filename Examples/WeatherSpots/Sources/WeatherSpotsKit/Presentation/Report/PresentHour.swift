import Astronomy
import Foundation
public import Larder

/// The weather of a spot in the present hour, as a row of a list of spots.
///
/// The name of a value says its unit. A value that is not known is written as `null`.
public struct PresentHour: Encodable, Sendable {
  /// Whether a request to the provider would bring nothing newer: the hours and the sea are fresh, or the provider has none here.
  public let isFresh: Bool
  private let row: JSONRow

  init(_ spot: Spot, _ hourly: WeatherReading<HourlyForecast>, _ marine: WeatherReading<MarineForecast>, at now: Date) {
    let hour = hourly.value.flatMap { Self.hour(at: now, in: $0.merged(with: marine.value)) }
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

  /// Writes every key, also those without a value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  /// Returns the row of the hour that runs, with the precipitation and the gusts of that hour.
  static func hour(at now: Date, in hours: [WeatherHour]) -> WeatherHour? {
    func isOf(_ hour: WeatherHour) -> Bool { hour.instant <= now && now < hour.instant.addingTimeInterval(3600) }
    guard var hour = hours.last(where: { isOf($0) && $0.hasValues }) else { return nil }
    // A row's precipitation and gusts are those of the hour before it: those of this hour are in the next row.
    let next = hours.first { $0.instant == hour.instant.addingTimeInterval(3600) }
    hour.precipitationMillimeters = next?.precipitationMillimeters
    hour.gustKilometersPerHour = next?.gustKilometersPerHour
    return hour
  }

  /// Returns the points of an hour, 0 to 100, which say how good it is to be outside.
  ///
  /// `nil` when its temperature is not known.
  ///
  /// An hour begins with 100 points. It loses 2 for each °C that the air feels warmer or colder than 22 °C, 1 for each km/h of gusts over
  /// 20, 20 for each mm of rain, and 10 for each metre of waves over 1; no hour has fewer than 0. The wind counts where the gusts are not
  /// known, and the air temperature where the felt one is not. Rain and waves that are not known cost nothing. The page says the same.
  static func points(_ hour: WeatherHour) -> Int? {
    guard let felt = hour.apparentCelsius ?? hour.temperatureCelsius else { return nil }
    let gusts = max(0, (hour.gustKilometersPerHour ?? hour.windKilometersPerHour ?? 0) - 20)
    let waves = max(0, (hour.sea?.waveMeters ?? 0) - 1)
    let left = 100 - 2 * abs(felt - 22) - gusts - 20 * (hour.precipitationMillimeters ?? 0) - 10 * waves
    return Int(min(max(left, 0), 100).rounded())
  }
}

extension WeatherService {
  /// Returns the weather of a spot in the present hour.
  ///
  /// A row without the present hour says why in `problem`.
  /// - Throws: `CancellationError`, and no other error.
  public func presentHour(of spot: Spot, policy: FetchPolicy) async throws -> PresentHour {
    let (hourly, marine) = try await weather(for: spot, policy: policy, including: .hourly, .marine)
    return PresentHour(spot, hourly, marine, at: clock.now)
  }
}
