import Larder

/// A kind of data to request from ``WeatherService``, with the type of its value.
public struct WeatherQuery<Value: Sendable>: Sendable {
  /// Kind of data that the query requests.
  public let dataset: WeatherDataset
  let read: @Sendable (WeatherService, WeatherService.Question) async throws -> WeatherReading<Value>
}

extension WeatherQuery where Value == CurrentWeather {
  /// Current conditions, fresh for ten minutes.
  public static var current: Self { Self(dataset: .current) { try await $0.read(.current, $0.caches.current, $1.place, $1) } }
}

extension WeatherQuery where Value == HourlyForecast {
  /// Hourly forecast, fresh for an hour.
  public static var hourly: Self { Self(dataset: .hourly) { try await $0.readHourly($1) } }
}

extension WeatherQuery where Value == DailyForecast {
  /// Daily forecast, fresh for an hour.
  public static var daily: Self { Self(dataset: .daily) { try await $0.readDaily($1) } }
}

extension WeatherQuery where Value == WeatherAlerts {
  /// Warnings in force, fresh for five minutes and never shown when older.
  public static var alerts: Self { Self(dataset: .alerts) { try await $0.read(.alerts, $0.caches.alerts, $1.place, $1) } }
}

extension WeatherQuery where Value == MarineForecast {
  /// Marine forecast, fresh for three hours.
  public static var marine: Self { Self(dataset: .marine) { try await $0.readMarine($1) } }
}

extension WeatherQuery where Value == [Astronomy] {
  /// Sun and moon of each requested day, computed without a request.
  public static var astronomy: Self { Self(dataset: .astronomy) { $0.astronomy($1) } }
}
