import Foundation
import Larder

extension WeatherService {
  /// What is there: a reading, or, where it has nothing, the newest stored answer that has the asked day, with the reason why it is not newer.
  ///
  /// Answers are stored by their first day and their span. Whoever asked yesterday for a week, or for ten days just now, has today's rows.
  /// - Parameter has: Whether an answer has rows of the asked day.
  func orStored<Value>(
    _ reading: Reading<Value>, _ cache: CachedRepository<PlaceDays, Value>, _ question: Question, has: (Value) -> Bool
  ) async throws -> Reading<Value> {
    guard question.policy != .networkOnly, case .unavailable(let problem) = reading else { return reading }
    var newest: Cached<Value>?
    for key in PlaceDays.mayHold(question.day, at: question.place) where key != question.days {
      do {
        let found = try await cache.value(for: key, policy: .cacheOnly)
        if has(found.value), newest.map({ $0.fetchedAt < found.fetchedAt }) ?? true { newest = found }
      } catch let error as CancellationError { throw error } catch {}  // not stored, which is what is being found out
    }
    guard let newest else { return reading }
    let reason: WeatherProblem? = question.policy == .cacheOnly ? nil : problem
    return .available(
      Cached(
        value: newest.value, fetchedAt: newest.fetchedAt, age: newest.age, state: newest.state, origin: newest.origin, refreshError: reason)
    )
  }

  /// Reads the hours.
  func readHourly(_ question: Question) async throws -> Reading<HourlyForecast> {
    let reading = try await read(.hourly, caches.hourly, question.days, question)
    return try await orStored(reading, caches.hourly, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }

  /// Reads the days.
  func readDaily(_ question: Question) async throws -> Reading<DailyForecast> {
    let reading = try await read(.daily, caches.daily, question.days, question)
    return try await orStored(reading, caches.daily, question) { $0.days.contains { $0.day == question.day } }
  }

  /// Reads the sea.
  func readMarine(_ question: Question) async throws -> Reading<MarineForecast> {
    let reading = try await readNewMarine(question)
    return try await orStored(reading, caches.marine, question) { $0.hours.contains { question.isFirstDay($0.instant) } }
  }
}

extension WeatherService.Question {
  /// Whether an instant is in the first of the asked days, at the place.
  fileprivate func isFirstDay(_ instant: Date) -> Bool { LocalDay(containing: instant, in: place.zone) == day }
}
