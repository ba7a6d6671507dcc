public import Foundation
import RecordedWeather

/// Transport that answers requests to Open-Meteo from recordings.
public struct RecordedTransport: Transport {
  private let now: @Sendable () -> Date

  /// Creates a transport whose answers are dated relative to the current time.
  public init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

  /// Returns the recorded answer to a request.
  ///
  /// The request's time limit is ignored.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
    // `uniquingKeysWith:`, since `Dictionary(uniqueKeysWithValues:)` traps on a repeated query item.
    let query = Dictionary(items.map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
    do {
      let answer =
        switch request.url.lastPathComponent {
        case "search": RecordedPlaces.answer(query)
        case "marine": try Recording.marine().answer(query, at: now())
        default: try Recording.forecast().answer(query, at: now())
        }
      return TransportResponse(status: answer.status, body: Data(answer.body.utf8), isRecorded: true)
    } catch {
      throw .unreachable(host: "the recordings", code: NSURLErrorResourceUnavailable)
    }
  }
}
