internal import Foundation
internal import Metrics
internal import Synchronization

/// The numbers that `/metrics` tells, in the text format of Prometheus; the metrics system of the process, if it has one, gets them, too.
final class ServerMetrics: Sendable {
  private struct Request: Hashable, Sendable {
    var route: String
    var method: String
    var status: Int
  }

  private struct Durations: Sendable {
    var buckets = Array(repeating: 0, count: ServerMetrics.bounds.count)
    var count = 0
    var seconds = 0.0
  }

  private struct State: Sendable {
    var requests: [Request: Int] = [:]
    var durations: [String: Durations] = [:]
    var groups = ["accepted": 0, "conflict": 0, "rejected": 0]
    var records = 0
  }

  private static let bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]
  private let state = Mutex(State())

  /// Notes a request that was answered.
  func note(_ route: String, _ method: String, status: Int, seconds: Double) {
    let dimensions = [("route", route), ("method", method), ("status", "\(status)")]
    Counter(label: "larder_requests_total", dimensions: dimensions).increment()
    Metrics.Timer(label: "larder_request_seconds", dimensions: [("route", route)]).recordSeconds(seconds)
    state.withLock { state in
      state.requests[Request(route: route, method: method, status: status), default: 0] += 1
      state.durations[route, default: Durations()].count += 1
      state.durations[route, default: Durations()].seconds += seconds
      for (index, bound) in Self.bounds.enumerated() where seconds <= bound {
        state.durations[route, default: Durations()].buckets[index] += 1
      }
    }
  }

  /// Notes the outcomes of a push.
  func note(accepted: Int, conflicts: Int, rejected: Int) {
    for (outcome, count) in [("accepted", accepted), ("conflict", conflicts), ("rejected", rejected)] where count > 0 {
      Counter(label: "larder_push_groups_total", dimensions: [("outcome", outcome)]).increment(by: count)
    }
    state.withLock { state in
      state.groups["accepted", default: 0] += accepted
      state.groups["conflict", default: 0] += conflicts
      state.groups["rejected", default: 0] += rejected
    }
  }

  /// Notes records that were handed out.
  func note(recordsRead count: Int) {
    Counter(label: "larder_records_read_total").increment(by: count)
    state.withLock { $0.records += count }
  }

  /// Returns all numbers as text.
  func text(streams: Int, connections: Int, bytesHeld: Int) -> String {
    let state = state.withLock { $0 }
    var lines: [String] = []
    func add(_ name: String, _ kind: String, _ help: String, _ samples: [(labels: String, value: String)]) {
      lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(kind)"]
      lines += samples.map { $0.labels.isEmpty ? "\(name) \($0.value)" : "\(name){\($0.labels)} \($0.value)" }
    }
    add(
      "larder_requests_total", "counter", "Requests by route and status.",
      state.requests.map { ("route=\"\($0.key.route)\",method=\"\($0.key.method)\",status=\"\($0.key.status)\"", "\($0.value)") }.sorted {
        $0.0 < $1.0
      })
    lines += ["# HELP larder_request_seconds Time to answer.", "# TYPE larder_request_seconds histogram"]
    for (route, durations) in state.durations.sorted(by: { $0.key < $1.key }) {
      for (bound, count) in zip(Self.bounds, durations.buckets) {
        lines.append("larder_request_seconds_bucket{route=\"\(route)\",le=\"\(bound)\"} \(count)")
      }
      lines.append("larder_request_seconds_bucket{route=\"\(route)\",le=\"+Inf\"} \(durations.count)")
      lines.append("larder_request_seconds_sum{route=\"\(route)\"} \(durations.seconds)")
      lines.append("larder_request_seconds_count{route=\"\(route)\"} \(durations.count)")
    }
    add(
      "larder_push_groups_total", "counter", "Groups of pushes by outcome.",
      state.groups.sorted { $0.key < $1.key }.map { ("outcome=\"\($0.key)\"", "\($0.value)") })
    add("larder_records_read_total", "counter", "Records in pages of changes.", [("", "\(state.records)")])
    add("larder_streams", "gauge", "Event streams and long polls that wait.", [("", "\(streams)")])
    add("larder_connections", "gauge", "Open connections.", [("", "\(connections)")])
    add("larder_bytes_held", "gauge", "Bytes of requests and answers that wait.", [("", "\(bytesHeld)")])
    return lines.joined(separator: "\n") + "\n"
  }
}
