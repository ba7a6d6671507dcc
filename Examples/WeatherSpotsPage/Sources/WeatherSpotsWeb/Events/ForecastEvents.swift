import AsyncAlgorithms
import Foundation
import Larder
import NIOCore
import WeatherSpotsKit

/// Stream of events about one spot's forecast.
///
/// A slow client gets only the latest event.
struct ForecastEvents: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let weather: WeatherService
  private let spot: Spot?

  /// Creates the stream of a spot.
  ///
  /// Without a spot it has no events and does not end.
  init(weather: WeatherService, spot: Spot?) { (self.weather, self.spot) = (weather, spot) }

  func makeAsyncIterator() -> AsyncThrowingStream<ByteBuffer, any Error>.Iterator {
    // An event only says that the client should read the forecast again, so one waiting event stands for all.
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      guard let spot else { return }
      let task = Task { [weather] in
        // The forecast is cached under its first day. At midnight of the spot, the updates of another key have to be followed.
        while await Self.tell(weather, spot, continuation) {}
        continuation.finish()
      }
      // Without the cancellation the task would follow the forecast for as long as the server runs.
      continuation.onTermination = { _ in task.cancel() }
    }.makeAsyncIterator()
  }

  /// Sends the events of the present day of the spot, and returns true if the day has ended, or false if the store or the stream has.
  private static func tell(
    _ weather: WeatherService, _ spot: Spot, _ continuation: AsyncThrowingStream<ByteBuffer, any Error>.Continuation
  ) async -> Bool {
    let news = weather.news(of: spot)
    return await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        let fetched = merge(news.current.map(\.fetchedAt), news.hourly.map(\.fetchedAt), news.marine.map(\.fetchedAt))
        for await date in fetched {
          do { continuation.yield(try EventText.forecast(of: spot.id, fetchedAt: date)) } catch { continuation.finish(throwing: error) }
        }
        return false
      }
      group.addTask {
        // The sleep throws only if it is cancelled, when the stream or the store has ended.
        do { try await weather.waitForNextDay(at: spot) } catch { return false }
        return true
      }
      // The group waits for both tasks, and the one that is left would wait until midnight or for the next fetch.
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
  }
}

/// Keep-alive messages of a stream, which let both sides detect a broken connection.
struct Beats: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let timer: AsyncTimerSequence<ContinuousClock>

  init(interval: Duration) { timer = AsyncTimerSequence(interval: interval, clock: .continuous) }

  func makeAsyncIterator() -> AsyncMapSequence<AsyncTimerSequence<ContinuousClock>, ByteBuffer>.Iterator {
    timer.map { _ in EventText.beat }.makeAsyncIterator()
  }
}
