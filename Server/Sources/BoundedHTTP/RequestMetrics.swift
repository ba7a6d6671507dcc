internal import Metrics
internal import Synchronization

/// Counts and durations of answered requests, in the text format of Prometheus.
///
/// The metrics system of the process (swift-metrics) gets them, too, if there is one.
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

  /// Creates the metrics of a server.
  ///
  /// - Parameter prefix: The beginning of the metrics' names, such as `larder`.
  public init(prefix: String) { self.prefix = prefix }

  /// Records an answered request.
  public func note(_ route: String, _ method: String, status: Int, seconds: Double) {
    let dimensions = [("route", route), ("method", method), ("status", "\(status)")]
    // Outside of the lock, because the metrics system of the process runs code of its own.
    Counter(label: "\(prefix)_requests_total", dimensions: dimensions).increment()
    Metrics.Timer(label: "\(prefix)_request_seconds", dimensions: [("route", route)]).recordSeconds(seconds)
    state.withLock { state in
      state.requests[Request(route: route, method: method, status: status), default: 0] += 1
      state.durations[route, default: Durations()].count += 1
      state.durations[route, default: Durations()].seconds += seconds
      // Prometheus reads buckets as cumulative, so one duration counts in every bucket that it fits.
      for (index, bound) in Self.bounds.enumerated() where seconds <= bound {
        state.durations[route, default: Durations()].buckets[index] += 1
      }
    }
  }

  /// All metrics as text.
  public var text: MetricsText {
    // A copy, so that no request waits while the text is made.
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
      // The format requires this last bucket, equal to the count.
      durations.append(("_bucket", "route=\"\(route)\",le=\"+Inf\"", "\(found.count)"))
      durations.append(("_sum", "route=\"\(route)\"", "\(found.seconds)"))
      durations.append(("_count", "route=\"\(route)\"", "\(found.count)"))
    }
    text.add(histogram: "\(prefix)_request_seconds", "Time to answer.", durations)
    return text
  }
}

/// Metrics in the text format of Prometheus.
public struct MetricsText: Sendable, CustomStringConvertible {
  /// Type of a metric with a single value.
  public enum Kind: String, Sendable {
    /// A value that only grows.
    case counter
    /// A value that rises and falls.
    case gauge
  }

  private var lines: [String] = []

  /// Adds a metric, with a value for each set of labels.
  public mutating func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: String, value: String)]) {
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(kind.rawValue)"]
    lines += samples.map { $0.labels.isEmpty ? "\(name) \($0.value)" : "\(name){\($0.labels)} \($0.value)" }
  }

  mutating func add(histogram name: String, _ help: String, _ samples: [(suffix: String, labels: String, value: String)]) {
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) histogram"]
    lines += samples.map { "\(name)\($0.suffix){\($0.labels)} \($0.value)" }
  }

  /// The metrics as text, with a line feed at the end.
  public var description: String { lines.joined(separator: "\n") + "\n" }
}
