import Foundation
import Larder

/// The warnings of the last answer, when the present ones are not known.
///
/// They are shown as what was known then and never as what is in force.
public struct LastKnownAlerts: Sendable {
  /// The greatest age of warnings that are still shown, in seconds.
  static let horizon: TimeInterval = 48 * 3600

  /// Those that have not ended since.
  public let alerts: [WeatherAlert]
  /// The age of the answer, in seconds.
  public let ageSeconds: Int

  init?(_ cache: CachedRepository<ForecastPlace, WeatherAlerts>, _ place: ForecastPlace, at now: Date) async {
    let entry: CachedEntry<ForecastPlace, WeatherAlerts>?
    do { entry = try await cache.storage.find(by: place) } catch { return nil }
    guard let entry, let answer = entry.value else { return nil }
    let age = now.timeIntervalSince(entry.fetchedAt)
    guard (0...Self.horizon).contains(age) else { return nil }
    alerts = answer.alerts.filter { now < $0.expires }
    ageSeconds = Int(age.rounded())
  }
}
