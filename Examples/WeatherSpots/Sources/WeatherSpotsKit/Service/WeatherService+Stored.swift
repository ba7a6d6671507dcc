public import Foundation
import Larder

extension WeatherService {
  /// Returns a reading, or the newest stored answer for the requested day if the reading is unavailable.
  ///
  /// The stored answer has the reason why it could not be refreshed. Answers are stored by their first day and their span, so an answer for
  /// a week from yesterday, or for ten days from today, has today's rows too.
  /// - Parameter has: Returns whether an answer has rows of the requested day.
  func orStored<Value>(
    _ reading: WeatherReading<Value>, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value> {
    guard question.policy != .networkOnly, case .unavailable(let problem) = reading else { return reading }
    guard let newest = try await newestStored(cache, question, has: has) else { return reading }
    // With `cacheOnly` no request failed, so the stored data are shown without a reason.
    let reason: WeatherProblem? = question.policy == .cacheOnly ? nil : problem
    return .available(
      Cached(
        value: newest.value, fetchedAt: newest.fetchedAt, age: newest.age, state: newest.state, origin: newest.origin, refreshError: reason)
    )
  }

  /// Returns the newest usable answer for the requested day among those stored with another first day or span.
  private func newestStored<Value>(
    _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> Cached<Value>? {
    var newest: Cached<Value>?
    for key in ForecastPeriod.mayHold(question.day, at: question.place) where key != question.days {
      do {
        let found = try await cache.value(for: key, policy: .cacheOnly)
        if has(found.value), newest.map({ $0.fetchedAt < found.fetchedAt }) ?? true { newest = found }
      } catch let error as CancellationError { throw error } catch {}  // Not stored under this key.
    }
    return newest
  }

  /// Returns a stored answer of another first day or span to show while a refresh runs, for the policy `staleWhileRevalidate`.
  ///
  /// After midnight, yesterday's answer has today's rows, and no answer of today is stored yet.
  private func storedAtOnce<Value>(
    _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value>? {
    guard question.policy == .staleWhileRevalidate else { return nil }
    do {
      if let entry = try await cache.storage.find(by: question.days), clock.now < entry.usableUntil { return nil }
    } catch { return nil }  // The cache reads the store next and reports its error.
    return try await newestStored(cache, question, has: has).map(WeatherReading.available)
  }

  /// Reads the hourly forecast, from the store or the provider.
  func readHourly(_ question: Question) async throws -> WeatherReading<HourlyForecast> {
    try await read(.hourly, caches.hourly, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }

  /// Reads the daily forecast, from the store or the provider.
  func readDaily(_ question: Question) async throws -> WeatherReading<DailyForecast> {
    try await read(.daily, caches.daily, question) { $0.days.contains { $0.day == question.day } }
  }

  /// Reads the marine forecast, from the store or the provider.
  func readMarine(_ question: Question) async throws -> WeatherReading<MarineForecast> {
    try await read(.marine, caches.marine, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }

  /// Reads a kind of data that belongs to days, from the store or the provider.
  ///
  /// - Parameter has: Returns whether an answer has rows of the requested day.
  private func read<Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> WeatherReading<Value> {
    if let reading = try await storedAtOnce(cache, question, has: has) { return reading }
    return try await orStored(try await readNew(dataset, cache, question), cache, question, has: has)
  }
}

extension WeatherService {
  /// Returns the age of the newest stored hours of a spot's day, expired ones included, or `nil` if there are none.
  public func ageOfStored(for spot: Spot, on day: LocalDay) async -> Duration? {
    await fetchedAt(day, at: place(spot)).map { .seconds(clock.now.timeIntervalSince($0)) }
  }

  /// Returns whether the hours of a spot's day that were fetched at the given time are still stored.
  public func hasHours(of spot: Spot, on day: LocalDay, fetchedAt instant: Date) async -> Bool {
    for key in ForecastPeriod.mayHold(day, at: place(spot)) {
      do { if try await caches.hourly.storage.find(by: key)?.fetchedAt == instant { return true } } catch { continue }
    }
    return false
  }

  /// Returns the last known warnings that have not ended since, or `nil` without an answer of the last two days.
  func lastKnownAlerts(at place: ForecastPlace) async -> LastKnownAlerts? { await LastKnownAlerts(caches.alerts, place, at: clock.now) }
}

extension WeatherService.Question {
  /// Returns whether an instant is in the first requested day, in the time zone of the place.
  fileprivate func isFirstDay(_ instant: Date) -> Bool { LocalDay(containing: instant, in: place.zone) == day }
}
