import Foundation
import Larder

/// Weather warnings from the last successful answer, for use while the present ones are not available.
///
/// Show them with their age and as last known warnings, never as warnings in force.
public struct LastKnownAlerts: Sendable {
  /// Greatest age at which the warnings are still shown, in seconds.
  static let horizon: TimeInterval = 48 * 3600

  /// Warnings of that answer that have not expired since.
  public let alerts: [WeatherAlert]
  /// Age of the answer, in seconds.
  public let ageSeconds: Int

  init?(_ cache: CachedRepository<ForecastPlace, WeatherAlerts>, _ place: ForecastPlace, at now: Date) async {
    let entry: CachedEntry<ForecastPlace, WeatherAlerts>?
    // Read from the storage, because the cache would send another request that has just failed.
    do { entry = try await cache.storage.find(by: place) } catch { return nil }
    guard let entry, let answer = entry.value else { return nil }
    let age = now.timeIntervalSince(entry.fetchedAt)
    // A negative age means that the clock was set back, so the true age is unknown.
    guard (0...Self.horizon).contains(age) else { return nil }
    // The cached answer may be older than the end of a warning.
    alerts = answer.alerts.filter { now < $0.expires }
    ageSeconds = Int(age.rounded())
  }
}
