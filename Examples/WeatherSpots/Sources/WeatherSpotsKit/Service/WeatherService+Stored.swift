public import Foundation
import Larder

extension WeatherService {
  /// Returns a reading, or, where it has no data, the newest stored answer that has the requested day, with the reason why it is
  /// not newer.
  ///
  /// Answers are stored by their first day and their span. A caller that asked yesterday for a week, or for ten days just now, has
  /// today's rows.
  /// - Parameter has: Whether an answer has rows of the asked day.
  func orStored<Value>(
    _ reading: WeatherReading<Value>, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value> {
    guard question.policy != .networkOnly, case .unavailable(let problem) = reading else { return reading }
    guard let newest = try await newestStored(cache, question, has: has) else { return reading }
    let reason: WeatherProblem? = question.policy == .cacheOnly ? nil : problem
    return .available(
      Cached(
        value: newest.value, fetchedAt: newest.fetchedAt, age: newest.age, state: newest.state, origin: newest.origin, refreshError: reason)
    )
  }

  /// Returns the newest stored answer that has the asked day and may be shown, of those that began on another day or have another span.
  private func newestStored<Value>(
    _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> Cached<Value>? {
    var newest: Cached<Value>?
    for key in ForecastPeriod.mayHold(question.day, at: question.place) where key != question.days {
      do {
        let found = try await cache.value(for: key, policy: .cacheOnly)
        if has(found.value), newest.map({ $0.fetchedAt < found.fetchedAt }) ?? true { newest = found }
      } catch let error as CancellationError { throw error } catch {}  // not stored, which is what is being found out
    }
    return newest
  }

  /// Returns the stored answer to show while it is refreshed: after midnight, yesterday's answer has today's rows and nothing is stored of
  /// today's own.
  private func storedAtOnce<Value>(
    _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value>? {
    guard question.policy == .staleWhileRevalidate else { return nil }
    do {
      if let entry = try await cache.storage.find(by: question.days), clock.now < entry.usableUntil { return nil }
    } catch { return nil }  // the cache finds out what is wrong with the store
    return try await newestStored(cache, question, has: has).map(WeatherReading.available)
  }

  /// Reads the hours.
  func readHourly(_ question: Question) async throws -> WeatherReading<HourlyForecast> {
    try await read(.hourly, caches.hourly, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }

  /// Reads the days.
  func readDaily(_ question: Question) async throws -> WeatherReading<DailyForecast> {
    try await read(.daily, caches.daily, question) { $0.days.contains { $0.day == question.day } }
  }

  /// Reads the sea.
  func readMarine(_ question: Question) async throws -> WeatherReading<MarineForecast> {
    try await read(.marine, caches.marine, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }

  /// Reads a kind of data that belongs to days.
  ///
  /// - Parameter has: Whether an answer has rows of the asked day.
  private func read<Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value> {
    if let reading = try await storedAtOnce(cache, question, has: has) { return reading }
    return try await orStored(try await readNew(dataset, cache, question), cache, question, has: has)
  }
}

extension WeatherService {
  /// Returns how old the newest stored hours of a spot's day are, though they may be too old to be shown; `nil` when there are none.
  public func ageOfStored(for spot: Spot, on day: LocalDay) async -> Duration? {
    await fetchedAt(day, at: place(spot)).map { .seconds(clock.now.timeIntervalSince($0)) }
  }

  /// Returns whether the hours of a spot's day that were fetched at an instant are still stored.
  public func hasHours(of spot: Spot, on day: LocalDay, fetchedAt instant: Date) async -> Bool {
    for key in ForecastPeriod.mayHold(day, at: place(spot)) {
      do { if try await caches.hourly.storage.find(by: key)?.fetchedAt == instant { return true } } catch { continue }
    }
    return false
  }

  /// Returns the warnings as they were last known, those that have not ended since; `nil` when nothing is known of the last two days.
  func lastKnownAlerts(at place: ForecastPlace) async -> LastKnownAlerts? {
    await LastKnownAlerts(caches.alerts, place, at: clock.now)
  }
}

extension WeatherService.Question {
  /// Returns whether an instant is in the first of the asked days, at the place.
  fileprivate func isFirstDay(_ instant: Date) -> Bool { LocalDay(containing: instant, in: place.zone) == day }
}
