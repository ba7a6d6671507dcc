import Foundation
import Larder

/// A formatter that turns weather values into short texts, in the units of a style.
struct WeatherText: Sendable {
  let style: CardStyle
  let zone: TimeZone

  /// Returns temperature, felt temperature, kind of weather and wind of a moment.
  func brief(_ hour: WeatherHour) -> [String] { [temperature(hour), apparent(hour), hour.words, wind(hour)].compactMap { $0 } }

  /// Returns the measured values of an hour without the kind of weather, which the card shows on another line.
  func numbers(_ hour: WeatherHour) -> [String] {
    [temperature(hour), apparent(hour), wind(hour), gusts(hour), chance(hour)].compactMap { $0 }
  }

  /// Returns the whole weather of an hour without unknown values.
  func parts(_ hour: WeatherHour) -> [String] {
    // Most hours are dry, and "0 mm" in each line would hide the hours with rain.
    let rain = hour.precipitationMillimeters == 0 ? nil : hour.precipitation
    let parts = [
      temperature(hour), apparent(hour), hour.words, wind(hour), gusts(hour), rain.map { text($0, .precipitation) }, chance(hour),
    ].compactMap { $0 }
    return parts.isEmpty ? ["no data"] : parts
  }

  private func temperature(_ hour: WeatherHour) -> String? { hour.temperature.map { text($0, .temperature) } }
  private func apparent(_ hour: WeatherHour) -> String? { hour.apparentTemperature.map { "feels like \(text($0, .temperature))" } }
  private func gusts(_ hour: WeatherHour) -> String? { hour.gust.map { "gusts \(style.units.number($0, as: .windSpeed))" } }
  private func chance(_ hour: WeatherHour) -> String? { hour.precipitationPercent.map { "\($0.text(decimals: 0)) % likely" } }

  /// Returns waves and water temperature of an hour.
  func brief(_ sea: SeaHour) -> [String] { [waves(sea), water(sea)].compactMap { $0 } }

  private func waves(_ sea: SeaHour) -> String? {
    sea.waveHeight.map { height in
      text(height, .waveHeight) + (sea.wavePeriodSeconds.map { " every \($0.text(decimals: 0)) s" } ?? "") + from(sea.waveDegrees)
    }
  }

  private func water(_ sea: SeaHour) -> String? { sea.surfaceTemperature.map { "water \(text($0, .temperature))" } }

  /// Returns waves, swell and water temperature of an hour.
  func parts(_ sea: SeaHour) -> [String] {
    let swell = sea.swellMeters.map { meters in
      "swell \(text(Measurement(value: meters, unit: UnitLength.meters), .waveHeight))"
        + (sea.swellPeriodSeconds.map { " every \($0.text(decimals: 0)) s" } ?? "") + from(sea.swellDegrees)
    }
    return [waves(sea), swell, water(sea)].compactMap { $0 }
  }

  /// Returns the texts of a reading, with its age if it is stale, or the reason why there are no data.
  func parts<Value>(_ reading: WeatherReading<Value>, _ words: (Value) -> [String]) -> [String] {
    switch reading {
    case .available(let cached):
      words(cached.value) + (cached.isOld ? ["STALE: \(ForecastReport.words(forAge: cached.ageSeconds))"] : [])
    case .noCoverage: ["no data here"]
    case .unsupported: ["not offered by this provider"]
    case .unavailable(let problem): ["unavailable: \(problem)"]
    }
  }

  /// Returns the line of a day in a forecast of several days.
  func line(_ day: ForecastReport.Day, _ date: LocalDay) -> WeatherCard.Detail {
    if day.skipped { return .init(date.shortName, [Astronomy.skipped(by: zone)]) }
    let rain = day.precipitationMm.map { text(Measurement(value: $0, unit: UnitLength.millimeters), .precipitation) }
    let wind = day.windMaxKmh.map { "wind up to \(text(Measurement(value: $0, unit: UnitSpeed.kilometersPerHour), .windSpeed))" }
    let waves = day.waveMaxM.map { "waves up to \(text(Measurement(value: $0, unit: UnitLength.meters), .waveHeight))" }
    var range: String?
    // The two limits may have different sources. A range whose end is below its start would trap.
    if let low = day.temperatureMinC, let high = day.temperatureMaxC { range = style.temperatures(low...max(low, high)) }
    let parts = [range, day.weather, rain, wind, waves].compactMap { $0 }
    return .init(date.shortName, parts.isEmpty ? ["no data"] : parts)
  }

  /// Returns the lowest and highest temperature of a day, such as 2.7 to 17.6 °C.
  func range(_ summary: DaySummary) -> String? { summary.temperatureCelsius.map(style.temperatures) }

  /// Returns the wind speed and the direction that the wind comes from.
  func wind(_ hour: WeatherHour) -> String? { hour.wind.map { text($0, .windSpeed) + from(hour.windDegrees) } }

  private func from(_ degrees: Double?) -> String { degrees.map { " from \(ForecastReport.compass($0))" } ?? "" }

  private func text<Dimension>(_ value: Measurement<Dimension>, _ quantity: Quantity<Dimension>) -> String {
    style.text(style.units.number(value, as: quantity), style.units.symbol(of: quantity))
  }
}

extension DaySummary {
  /// Precipitation of the day, with snow as melted water.
  var precipitation: Measurement<UnitLength>? { precipitationMillimeters.map { Measurement(value: $0, unit: .millimeters) } }
}

extension LocalDay {
  /// Weekday and day of the month, such as Sat 21.
  var shortName: String {
    // Both calls use GMT, so the result does not depend on the zone of the process.
    let parts = Calendar.gregorian(in: .gmt).dateComponents([.weekday, .day], from: noon(in: .gmt))
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    return "\(names[((parts.weekday ?? 1) - 1) % 7]) \(parts.day ?? 0)"
  }
}

extension ForecastReport {
  /// Returns an age as text, such as 12 min old.
  static func words(forAge seconds: Int) -> String {
    switch seconds {
    // A negative age would read as 0 s and look fresh.
    case ..<0: "from the future: was the clock set back?"
    case ..<60: "just now"
    case ..<120: "1 min old"
    default: "\(ageText(seconds: seconds)) old"
    }
  }

  /// Returns the nearest of the sixteen compass points, such as NNE for 22.5 degrees.
  static func compass(_ degrees: Double) -> String {
    let names = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"]
    // A remainder keeps its sign. Adding a full turn makes the index positive.
    let index = Int((degrees.truncatingRemainder(dividingBy: 360) + 360) / 22.5 + 0.5) % 16
    return names[index]
  }
}

/// Returns an age with its unit, such as 12 min, or 0 s for a negative age.
public func ageText(seconds: Int) -> String {
  switch seconds {
  case ..<120: "\(max(seconds, 0)) s"
  case ..<7200: "\(seconds / 60) min"
  case ..<172_800: "\(seconds / 3600) h"
  default: "\(seconds / 86_400) days"
  }
}
