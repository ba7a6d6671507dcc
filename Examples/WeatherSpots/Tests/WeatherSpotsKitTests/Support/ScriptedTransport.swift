import Foundation
import Synchronization

@testable import WeatherSpotsKit

/// Answers as a test says, and remembers what was asked.
final class ScriptedTransport: Transport {
  enum Step: Sendable {
    case body(String, status: Int = 200, retryAfter: Duration? = nil)
    case down
  }

  private let steps: Mutex<[String: Step]>
  private let asked = Mutex<[URL]>([])

  init(forecast: Step, marine: Step) { steps = Mutex(["/v1/forecast": forecast, "/v1/marine": marine]) }
  init(_ path: String, _ body: String) { steps = Mutex([path: .body(body)]) }

  var requests: [URL] { asked.withLock { $0 } }

  func set(forecast: Step, marine: Step) { steps.withLock { $0 = ["/v1/forecast": forecast, "/v1/marine": marine] } }

  func set(_ path: String, _ body: String) { steps.withLock { $0[path] = .body(body) } }

  /// Returns the number of requests that went to a path.
  func count(_ path: String) -> Int { requests.count { $0.path == path } }

  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    asked.withLock { $0.append(request.url) }
    switch steps.withLock({ $0[request.url.path] }) {
    case .body(let body, let status, let retryAfter):
      return TransportResponse(status: status, body: Data(body.utf8), retryAfter: retryAfter)
    case .down, nil: throw .unreachable(host: "test", code: NSURLErrorCannotConnectToHost)
    }
  }
}

/// A day of hourly rows in GMT, every value the same.
func hourlyBody(_ day: String, _ columns: [(name: String, unit: String, value: String)]) -> String {
  let times = (0..<24).map { "\"\(day)T\($0 < 10 ? "0" : "")\($0):00\"" }.joined(separator: ",")
  let units = columns.map { "\"\($0.name)\":\"\($0.unit)\"" }.joined(separator: ",")
  let values = columns.map { "\"\($0.name)\":[\(Array(repeating: $0.value, count: 24).joined(separator: ","))]" }.joined(separator: ",")
  return "{\"utc_offset_seconds\":0,\"hourly_units\":{\(units)},\"hourly\":{\"time\":[\(times)],\(values)}}"
}
