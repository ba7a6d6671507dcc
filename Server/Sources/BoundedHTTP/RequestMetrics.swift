internal import Metrics
internal import Synchronization

/// The numbers of requests, in the text format of Prometheus; the metrics system of the process, if it has one, gets them, too.
public final class RequestMetrics: Sendable {
  private struct Request: Hashable, Sendable {
    var route: String
    var method: String
    var status: Int
  }

  private struct Durations: Sendable {
    var buckets = Array(repeating: 0, count: RequestMetrics.bounds.count)
    var count = 0
    var seconds = 0.0
  }

  private struct State: Sendable {
    var requests: [Request: Int] = [:]
    var durations: [String: Durations] = [:]
  }

  private static let bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]
  private let state = Mutex(State())
  private let prefix: String

  /// Makes the numbers of a server.
  ///
  /// - Parameter prefix: The beginning of their names, such as `larder`.
  public init(prefix: String) { self.prefix = prefix }

  /// Notes a request that was answered.
  public func note(_ route: String, _ method: String, status: Int, seconds: Double) {
    let dimensions = [("route", route), ("method", method), ("status", "\(status)")]
    Counter(label: "\(prefix)_requests_total", dimensions: dimensions).increment()
    Metrics.Timer(label: "\(prefix)_request_seconds", dimensions: [("route", route)]).recordSeconds(seconds)
    state.withLock { state in
      state.requests[Request(route: route, method: method, status: status), default: 0] += 1
      state.durations[route, default: Durations()].count += 1
      state.durations[route, default: Durations()].seconds += seconds
      for (index, bound) in Self.bounds.enumerated() where seconds <= bound {
        state.durations[route, default: Durations()].buckets[index] += 1
      }
    }
  }

  /// Returns all numbers as text.
  public var text: MetricsText {
    let state = state.withLock { $0 }
    var text = MetricsText()
    text.add(
      "\(prefix)_requests_total", .counter, "Requests by route and status.",
      state.requests.map { ("route=\"\($0.key.route)\",method=\"\($0.key.method)\",status=\"\($0.key.status)\"", "\($0.value)") }.sorted {
        $0.0 < $1.0
      })
    var durations: [(suffix: String, labels: String, value: String)] = []
    for (route, found) in state.durations.sorted(by: { $0.key < $1.key }) {
      for (bound, count) in zip(Self.bounds, found.buckets) {
        durations.append(("_bucket", "route=\"\(route)\",le=\"\(bound)\"", "\(count)"))
      }
      durations.append(("_bucket", "route=\"\(route)\",le=\"+Inf\"", "\(found.count)"))
      durations.append(("_sum", "route=\"\(route)\"", "\(found.seconds)"))
      durations.append(("_count", "route=\"\(route)\"", "\(found.count)"))
    }
    text.add(histogram: "\(prefix)_request_seconds", "Time to answer.", durations)
    return text
  }
}

/// Numbers in the text format of Prometheus.
public struct MetricsText: Sendable, CustomStringConvertible {
  /// The kinds of numbers that are single ones.
  public enum Kind: String, Sendable {
    /// One that only grows.
    case counter
    /// One that goes up and down.
    case gauge
  }

  private var lines: [String] = []

  /// Adds a number, with a value for each set of labels.
  public mutating func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: String, value: String)]) {
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(kind.rawValue)"]
    lines += samples.map { $0.labels.isEmpty ? "\(name) \($0.value)" : "\(name){\($0.labels)} \($0.value)" }
  }

  mutating func add(histogram name: String, _ help: String, _ samples: [(suffix: String, labels: String, value: String)]) {
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) histogram"]
    lines += samples.map { "\(name)\($0.suffix){\($0.labels)} \($0.value)" }
  }

  /// The text.
  public var description: String { lines.joined(separator: "\n") + "\n" }
}
