import Foundation
public import Larder

/// The estimated cost of the forecasts of many spots.
public struct ForecastEstimate: Hashable, Codable, Sendable {
  /// The number of spots.
  public var spots: Int
  /// The number of spots with data that would be requested.
  public var toFetch: Int
  /// About how many calls that is, at least.
  public var calls: Int
  /// The weight of the calls in the provider's quota.
  public var weight: Double
  /// About how long it takes, in seconds: the calls, and the waiting for the quota.
  public var seconds: Int
}

extension WeatherService {
  /// Returns what the forecasts of some spots would take, without a request.
  ///
  /// - Parameters:
  ///   - spots: Whose forecasts.
  ///   - day: The first day; today unless given.
  ///   - policy: Where the answers may come from.
  ///   - placesPerCall: How many places go in one call.
  ///   - perMinute: The quota of a minute; `nil` for none that would be waited for.
  public func estimate(
    for spots: [Spot], on day: LocalDay? = nil, policy: FetchPolicy, placesPerCall: Int, perMinute: Double?
  ) async -> ForecastEstimate {
    var (toFetch, weight): (Int, Double) = (0, 0)
    var places: [String: Int] = [:]
    for spot in spots {
      let day = day ?? LocalDay(containing: clock.now, in: spot.zone)
      let kinds: Set<WeatherDataset> =
        day == LocalDay(containing: clock.now, in: spot.zone) ? [.current, .hourly, .daily, .alerts, .marine] : [.hourly, .daily, .marine]
      let wanted = await fetched(kinds, for: spot, day, policy)
      guard !wanted.isEmpty else { continue }
      toFetch += 1
      for (service, datasets) in wanted {
        places[service, default: 0] += 1
        weight += provider.weight(of: ProviderRequest(place(spot), from: day, days: ForecastPeriod.spans.week, datasets))
      }
    }
    let calls = places.values.reduce(0) { $0 + ($1 + placesPerCall - 1) / placesPerCall }
    // Four calls at a time, of about a second; a minute's quota is there at once, and then comes back evenly.
    let waiting = perMinute.map { max(0, weight - $0) / $0 * 60 } ?? 0
    return ForecastEstimate(
      spots: spots.count, toFetch: toFetch, calls: calls, weight: weight, seconds: Int((Double(calls) / 4 + waiting).rounded(.up)))
  }
}
