import AsyncAlgorithms
import Foundation
import Larder
import NIOCore
import WeatherSpotsKit

/// The news of one spot's forecast, as events: of each it is enough to know the last.
struct ForecastEvents: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let weather: WeatherService
  private let spot: Spot?

  /// Makes the news of a spot; without one there are none, and no end either.
  init(weather: WeatherService, spot: Spot?) { (self.weather, self.spot) = (weather, spot) }

  func makeAsyncIterator() -> AsyncThrowingStream<ByteBuffer, any Error>.Iterator {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      guard let spot else { return }
      let task = Task { [weather] in
        // What is shown begins today, and tomorrow that is another day.
        while await Self.tell(weather, spot, continuation) {}
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }.makeAsyncIterator()
  }

  /// Tells the news of the present day of the spot, and returns whether it has ended, and not the store or the stream.
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
        // Ended early, it is cancelled, which is no failure.
        do { try await weather.waitForNextDay(at: spot) } catch { return false }
        return true
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
  }
}

/// The signs of life of a stream, by which both sides see that the other is there.
struct Beats: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let timer: AsyncTimerSequence<ContinuousClock>

  init(interval: Duration) { timer = AsyncTimerSequence(interval: interval, clock: .continuous) }

  func makeAsyncIterator() -> AsyncMapSequence<AsyncTimerSequence<ContinuousClock>, ByteBuffer>.Iterator {
    timer.map { _ in EventText.beat }.makeAsyncIterator()
  }
}
