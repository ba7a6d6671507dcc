public import Foundation
import RecordedWeather

/// Answers requests to Open-Meteo from the recordings.
public struct RecordedTransport: Transport {
  private let now: @Sendable () -> Date

  /// Makes a transport that answers for days counted from an instant.
  public init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

  /// Answers; the time limit is of no importance.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
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
