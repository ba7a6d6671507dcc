public import Foundation

/// A summary of a day's hourly forecast: the weather at noon and the extremes of the day.
public struct DaySummary: Sendable {
  /// Row nearest to noon.
  public let noon: WeatherHour
  /// Lowest and highest temperature of the day's rows, in degrees Celsius.
  public let temperatureCelsius: ClosedRange<Double>?
  /// Day's precipitation, in millimetres.
  public let precipitationMillimeters: Double?
  /// Strongest wind of the day's rows, in kilometres per hour.
  public let strongestWindKilometersPerHour: Double?

  /// Creates the summary of a day in a time zone, from the rows of that day alone.
  ///
  /// - Returns: The summary, or `nil` if the forecast has no values within three hours of the day's noon.
  public init?(_ hours: [WeatherHour], of day: LocalDay, in zone: TimeZone) {
    let interval = day.interval(in: zone)
    let noonInstant = day.noon(in: zone)
    let ofDay = hours.filter { interval.start <= $0.instant && $0.instant < interval.end && $0.hasValues }
    // Rows can be hours apart. One that is over three hours from noon must not be shown as noon.
    func distance(_ hour: WeatherHour) -> TimeInterval { abs(hour.instant.timeIntervalSince(noonInstant)) }
    guard let noon = ofDay.min(by: { distance($0) < distance($1) }), distance(noon) <= 3 * 3600 else { return nil }
    self.noon = noon
    let temperatures = ofDay.compactMap(\.temperatureCelsius)
    temperatureCelsius = temperatures.min().flatMap { low in temperatures.max().map { low...$0 } }
    // A row's precipitation fell in the hour before it: the row of midnight belongs to the day that ends.
    let amounts = hours.filter { interval.start < $0.instant && $0.instant <= interval.end }.compactMap(\.precipitationMillimeters)
    precipitationMillimeters = amounts.isEmpty ? nil : amounts.reduce(0, +)
    strongestWindKilometersPerHour = ofDay.compactMap(\.windKilometersPerHour).max()
  }
}
