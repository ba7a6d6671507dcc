import Foundation

extension OpenMeteoResponse {
  /// Returns the kinds of data of the weather's host; a unit that is wrong in one of them does not spoil the others.
  func answer(to asked: Set<WeatherDataset>, in zone: TimeZone, _ provenance: Provenance) -> ProviderAnswer {
    var answer = ProviderAnswer()
    if asked.contains(.current) { answer.current = part { () throws(ProviderError) in try currentWeather(provenance) } }
    if asked.contains(.hourly) { answer.hourly = part { () throws(ProviderError) in try hourlyForecast(provenance) } }
    if asked.contains(.daily) { answer.daily = part { () throws(ProviderError) in try dailyForecast(in: zone, provenance) } }
    return answer
  }

  /// Returns the sea.
  ///
  /// Inland it is empty, which a failure of the service's model may make it too: that is believed for a shorter time.
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
    let days = try daily.rows({ WeatherDay(LocalDay(containing: $0 + 43200, in: zone)) }, WeatherDay.variables)
    return zip(daily.instants, days).filter { WeatherDay.day(from: $0, in: zone) != nil && $1.hasValues }.map(\.1).sorted {
      $0.day < $1.day
    }
  }

  private func currentWeather(_ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<CurrentWeather> {
    guard let conditions = try current.rows(WeatherHour.init(instant:), WeatherHour.currentVariables).first else {
      throw .malformed("no current conditions")
    }
    return .data(CurrentWeather(conditions: conditions, provenance: provenance))
  }

  private func hourlyForecast(_ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<HourlyForecast> {
    guard !hourly.instants.isEmpty else { throw .malformed("no hours") }
    return .data(HourlyForecast(hours: try weatherHours(), provenance: provenance))
  }

  private func dailyForecast(in zone: TimeZone, _ provenance: Provenance) throws(ProviderError) -> ProviderAnswer.Part<DailyForecast> {
    guard !daily.instants.isEmpty else { throw .malformed("no days") }
    return .data(DailyForecast(days: try weatherDays(in: zone), provenance: provenance))
  }

  private func part<Value>(_ body: () throws(ProviderError) -> ProviderAnswer.Part<Value>) -> ProviderAnswer.Part<Value> {
    do throws(ProviderError) { return try body() } catch { return .failure(error) }
  }
}
