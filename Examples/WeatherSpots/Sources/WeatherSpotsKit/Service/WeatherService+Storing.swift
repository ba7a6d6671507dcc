import Foundation
import Larder

extension WeatherService {
  /// Returns whether all data of a forecast are stored.
  ///
  /// A fetched forecast is returned even if the disk is full.
  public func isStored(_ weather: SpotWeather) async -> Bool {
    let place = place(weather.spot)
    let days = ForecastPeriod.mayHold(weather.day, at: place) + [ForecastPeriod(place, from: weather.day, days: weather.count)]
    if let current = weather.current, await !isStored(current, caches.current, [place]) { return false }
    if await !isStored(weather.hourly, caches.hourly, days) { return false }
    if await !isStored(weather.daily, caches.daily, days) { return false }
    return await isStored(weather.marine, caches.marine, days)
  }

  private func isStored<Key, Value>(_ reading: WeatherReading<Value>, _ cache: CachedRepository<Key, Value>, _ keys: [Key]) async -> Bool {
    // Without data there is nothing to store, so it cannot be missing.
    guard let cached = reading.cached else { return true }
    for key in keys {
      // The fetch time identifies the answer: another process may have stored a different one under the same key.
      do { if try await cache.storage.find(by: key)?.fetchedAt == cached.fetchedAt { return true } } catch { return false }
    }
    return false
  }

  /// Reason for the last failed write of a cache in a few words, or `nil` if no write failed.
  public var storageProblem: String? {
    let codes = caches.statistics.compactMap(\.lastStorageError)
    // After a failed write the store refuses all others as `.poisoned`. Another code is the actual cause.
    guard let code = codes.first(where: { $0 != .poisoned }) ?? codes.first else { return nil }
    return switch code {
    case .full: "the disk is full"
    case .locked: "another process has locked the store"
    case .inputOutput, .outcomeUnknown, .poisoned: "the store cannot be written"
    default: "the store failed (\(code))"
    }
  }
}
