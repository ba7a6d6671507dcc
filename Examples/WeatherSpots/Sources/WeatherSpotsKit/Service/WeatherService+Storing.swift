import Foundation
import Larder

extension WeatherService {
  /// Returns whether all that a forecast shows is stored; on a full disk it is shown all the same.
  public func isStored(_ weather: SpotWeather) async -> Bool {
    let place = place(weather.spot)
    let days = ForecastPeriod.mayHold(weather.day, at: place) + [ForecastPeriod(place, from: weather.day, days: weather.count)]
    if let current = weather.current, await !isStored(current, caches.current, [place]) { return false }
    if await !isStored(weather.hourly, caches.hourly, days) { return false }
    if await !isStored(weather.daily, caches.daily, days) { return false }
    return await isStored(weather.marine, caches.marine, days)
  }

  private func isStored<Key, Value>(_ reading: WeatherReading<Value>, _ cache: CachedRepository<Key, Value>, _ keys: [Key]) async -> Bool {
    guard let cached = reading.cached else { return true }
    for key in keys {
      do { if try await cache.storage.find(by: key)?.fetchedAt == cached.fetchedAt { return true } } catch { return false }
    }
    return false
  }

  /// The reason why something could not be stored, in a few words; `nil` when nothing has failed.
  public var storageProblem: String? {
    let statistics = caches.statistics
    let codes = ["hourly", "daily", "current", "marine", "alerts"].compactMap { statistics[$0]?.lastStorageError }
    // After a failed write a store refuses all others: the first reason is the one to tell.
    guard let code = codes.first(where: { $0 != .poisoned }) ?? codes.first else { return nil }
    return switch code {
    case .full: "the disk is full"
    case .locked: "another process has locked the store"
    case .inputOutput, .outcomeUnknown, .poisoned: "the store cannot be written"
    default: "the store failed (\(code))"
    }
  }
}
