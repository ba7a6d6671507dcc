import Foundation

extension OpenMeteoResponse {
  /// Returns the requested current, hourly and daily data, each with its own outcome.
  ///
  /// A wrong unit in one kind of data fails that kind alone.
  func answer(to asked: Set<WeatherDataset>, in zone: TimeZone, _ provenance: Provenance) -> ProviderAnswer {
    var answer = ProviderAnswer()
    if asked.contains(.current) { answer.current = part { () throws(ProviderError) in try currentWeather(provenance) } }
    if asked.contains(.hourly) { answer.hourly = part { () throws(ProviderError) in try hourlyForecast(provenance) } }
    if asked.contains(.daily) { answer.daily = part { () throws(ProviderError) in try dailyForecast(in: zone, provenance) } }
    return answer
  }

  /// Returns the marine forecast, or an absence for one day if the answer has no values.
  ///
  /// Inland the service sends no values. A failed marine model at the service looks the same, so the absence expires after a day.
  func marineAnswer(_ provenance: Provenance) -> ProviderAnswer {
    var answer = ProviderAnswer()
    answer.marine = part { () throws(ProviderError) in
      let hours = try seaHours()
      guard !hours.isEmpty else { return .noCoverage(for: .seconds(86400)) }
      return .data(MarineForecast(hours: hours, provenance: provenance))
    }
    return answer
  }

  func seaHours() throws(ProviderError) -> [SeaHour] {
    try hourly.rows(SeaHour.init(instant:), SeaHour.variables).filter(\.hasValues).sorted { $0.instant < $1.instant }
  }

  func weatherHours() throws(ProviderError) -> [WeatherHour] {
    try hourly.rows(WeatherHour.init(instant:), WeatherHour.hourlyVariables).sorted { $0.instant < $1.instant }
  }

  func weatherDays(in zone: TimeZone) throws(ProviderError) -> [WeatherDay] {
    // Noon of each day: after a clock change the fixed offset of the answer puts midnight on the day before.
    let days = try daily.rows({ WeatherDay(LocalDay(containing: $0 + 43200, in: zone)) }, WeatherDay.variables)
    // A row that starts more than three hours from its midnight would show another day's sums.
    return zip(daily.instants, days).filter { WeatherDay.day(from: $0, in: zone) != nil && $1.hasValues }.map(\.1).sorted {
      $0.day < $1.day
    }
  }

  private func currentWeather(_ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<CurrentWeather> {
    // An empty section is a failure: as data it would replace the older conditions in the cache.
    guard let conditions = try current.rows(WeatherHour.init(instant:), WeatherHour.currentVariables).first else {
      throw .malformed("no current conditions")
    }
    return .data(CurrentWeather(conditions: conditions, provenance: provenance))
  }

  private func hourlyForecast(_ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<HourlyForecast> {
    // As data an empty table would replace the stored hours.
    guard !hourly.instants.isEmpty else { throw .malformed("no hours") }
    return .data(HourlyForecast(hours: try weatherHours(), provenance: provenance))
  }

  private func dailyForecast(in zone: TimeZone, _ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<DailyForecast> {
    // As data an empty table would replace the stored days.
    guard !daily.instants.isEmpty else { throw .malformed("no days") }
    return .data(DailyForecast(days: try weatherDays(in: zone), provenance: provenance))
  }

  private func part<Value>(_ body: () throws(ProviderError) -> ProviderAnswer.Part<Value>) -> ProviderAnswer.Part<Value> {
    // The error stays in its part, so that one wrong unit does not fail the other kinds.
    do throws(ProviderError) { return try body() } catch { return .failure(error) }
  }
}
