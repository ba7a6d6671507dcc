import Foundation

extension WeatherKitResponse {
  /// Returns the requested data sets.
  ///
  /// A requested data set that is missing from the answer counts as not offered at this place.
  func answer(to asked: Set<WeatherDataset>, in zone: TimeZone, _ provenance: Provenance) -> ProviderAnswer {
    var answer = ProviderAnswer()
    if asked.contains(.current) {
      answer.current = part(currentWeather, \.own.metadata) {
        CurrentWeather(conditions: $0.conditions.row(at: $0.own.asOf), provenance: provenance)
      }
    }
    if asked.contains(.hourly) {
      answer.hourly = part(forecastHourly, \.metadata) {
        HourlyForecast(hours: Self.hours($0.hours), provenance: provenance)
      }
    }
    if asked.contains(.daily) {
      answer.daily = part(forecastDaily, \.metadata) {
        DailyForecast(days: $0.days.compactMap { $0.day(in: zone) }.sorted { $0.day < $1.day }, provenance: provenance)
      }
    }
    if asked.contains(.alerts) {
      answer.alerts = part(weatherAlerts, \.metadata) {
        WeatherAlerts(alerts: $0.alerts.map(\.alert), provenance: provenance)
      }
    }
    return answer
  }

  private func part<Wire, Value>(
    _ dataSet: DataSet<Wire>, _ metadata: (Wire) -> Metadata, _ make: (Wire) -> Value
  ) -> ProviderAnswer.Part<Value> {
    let wire: Wire
    switch dataSet {
    case .here(let value): wire = value
    case .missing: return .failure(.unsupported)
    case .unreadable(let what): return .failure(.malformed(what))
    }
    let metadata = metadata(wire)
    // "m" for metric is the only documented value. Other units must not be shown as metric ones.
    guard metadata.units ?? "m" == "m" else { return .failure(.unexpectedUnit(column: "units", unit: metadata.units ?? "")) }
    return .data(make(wire), until: metadata.expireTime)
  }

  /// Returns the hourly rows, each with the precipitation of the hour before it.
  ///
  /// WeatherKit sends the amount of the hour that follows, so each amount moves to the next row.
  private static func hours(_ wire: [Joined<Hour>]) -> [WeatherHour] {
    // `uniquingKeysWith:`, since a repeated hour in the answer would trap otherwise.
    let amounts = Dictionary(wire.map { ($0.own.forecastStart + 3600, $0.own.precipitationAmount) }) { first, _ in first }
    return wire.map { hour in
      var row = hour.conditions.row(at: hour.own.forecastStart)
      row.precipitationPercent = hour.own.precipitationChance.flatMap(percent)
      row.precipitationMillimeters = amounts[hour.own.forecastStart].flatMap { $0 }
      return row
    }.sorted { $0.instant < $1.instant }
  }
}

extension WeatherKitResponse.Conditions {
  fileprivate func row(at instant: Date) -> WeatherHour {
    var row = WeatherHour(instant: instant)
    row.condition = conditionCode.map(conditionWords)
    row.temperatureCelsius = temperature
    row.apparentCelsius = temperatureApparent
    row.humidityPercent = humidity.flatMap(percent)
    row.cloudPercent = cloudCover.flatMap(percent)
    row.pressureHectopascals = pressure
    row.windKilometersPerHour = windSpeed
    row.gustKilometersPerHour = windGust
    row.windDegrees = windDirection
    row.uvIndex = uvIndex
    return row
  }
}

extension WeatherKitResponse.Day {
  fileprivate func day(in zone: TimeZone) -> WeatherDay? {
    guard let day = WeatherDay.day(from: forecastStart, in: zone) else { return nil }
    var row = WeatherDay(day)
    row.condition = conditionCode.map(conditionWords)
    row.lowestCelsius = temperatureMin
    row.highestCelsius = temperatureMax
    row.precipitationMillimeters = precipitationAmount
    row.precipitationPercent = precipitationChance.flatMap(percent)
    // Not the daytime's wind, which is a mean. Without a maximum, the largest wind of the hours is shown.
    row.windKilometersPerHour = windSpeedMax
    row.gustKilometersPerHour = windGustSpeedMax
    row.windDegrees = daytimeForecast?.windDirection
    row.uvIndex = maxUvIndex
    return row
  }
}

extension WeatherKitResponse.Alert {
  fileprivate var alert: WeatherAlert {
    WeatherAlert(
      id: id, summary: shown(description), areaName: areaName.map(shown), source: shown(source ?? "unknown"),
      severity: shown(severity ?? "unknown"), urgency: urgency.map(shown), certainty: certainty.map(shown), issued: issuedTime,
      effective: effectiveTime, expires: expireTime, onset: eventOnsetTime, end: eventEndTime,
      details: detailsUrl.flatMap(URL.init(string:)))
  }
}

/// Returns a fraction as a percentage, or `nil` if the result is not finite.
///
/// Rounding removes the digits that the multiplication adds.
private func percent(_ part: Double) -> Double? {
  let percent = (part * 100).rounded(decimals: 6)
  return percent.isFinite ? percent : nil
}

/// Returns a text of the service without control characters, which could move a terminal's cursor.
private func shown(_ text: String) -> String { String(text.map { $0.isNewline ? " " : $0 }.filter { $0 >= " " && $0 != "\u{7F}" }) }

/// Returns the words of a condition code, such as "Mostly clear" for MostlyClear.
///
/// Codes that Apple adds later become readable words too.
private func conditionWords(_ code: String) -> String {
  var words = ""
  for character in shown(code) {
    if character.isUppercase, !words.isEmpty { words += " " }
    words += words.isEmpty ? String(character) : character.lowercased()
  }
  return words
}
