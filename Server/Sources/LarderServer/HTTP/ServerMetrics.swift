internal import BoundedHTTP
internal import Metrics
internal import Synchronization

/// Metrics that `/metrics` returns.
///
/// The metrics system of the process (swift-metrics) gets them, too, if there is one.
final class ServerMetrics: Sendable {
  private struct State: Sendable {
    // Present at zero from the start, so that the first increase of each outcome shows.
    var groups = ["accepted": 0, "conflict": 0, "rejected": 0]
    var records = 0
  }

  /// Metrics of answered requests.
  let requests = RequestMetrics(prefix: "larder")
  private let state = Mutex(State())

  /// Counts the outcomes of the groups of a push.
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

  /// Counts records that were returned in pages.
  func note(recordsRead count: Int) {
    Counter(label: "larder_records_read_total").increment(by: count)
    state.withLock { $0.records += count }
  }

  /// Returns all metrics as text.
  func text(streams: Int, connections: Int, bytesHeld: Int, lags: DeviceLags = DeviceLags()) -> String {
    let state = state.withLock { $0 }
    var text = requests.text
    text.add(
      "larder_push_groups_total", .counter, "Groups of pushes by outcome.",
      state.groups.sorted { $0.key < $1.key }.map { ("outcome=\"\($0.key)\"", "\($0.value)") })
    text.add("larder_records_read_total", .counter, "Records in pages of changes.", [("", "\(state.records)")])
    text.add("larder_streams", .gauge, "Event streams and long polls that wait.", [("", "\(streams)")])
    text.add("larder_connections", .gauge, "Open connections.", [("", "\(connections)")])
    text.add("larder_bytes_held", .gauge, "Bytes of requests and answers that wait.", [("", "\(bytesHeld)")])
    text.add(lags)
    return text.description
  }
}

extension MetricsText {
  /// Adds the metrics of devices that have not read everything.
  fileprivate mutating func add(_ lags: DeviceLags) {
    add(
      "larder_devices_seen", .gauge, "Devices that have asked for changes within 30 days, counted once for each scope.",
      [("", "\(lags.seen)")])
    add("larder_scopes_behind", .gauge, "Scopes with devices that have not read everything.", [("", "\(lags.scopesBehind)")])
    let scopes = lags.worst.map { (label: "scope=\"\(Self.escaped($0.scope))\"", lag: $0) }
    add(
      "larder_devices_behind", .gauge, "Devices that have not read everything, of the 20 scopes that are most behind.",
      scopes.map { ($0.label, "\($0.lag.devices)") })
    add(
      "larder_commits_behind", .gauge, "Commits that the last of these devices has not read.",
      scopes.map { ($0.label, "\($0.lag.commits)") })
  }

  /// Returns a text as the value of a label, with characters escaped that terminals obey.
  ///
  /// Scalars are escaped and not characters: a quotation mark with a combining mark is one character, and ends a label. Different texts
  /// stay different, because a series that occurs twice would make the whole answer unreadable.
  private static func escaped(_ text: String) -> String {
    var plain = ""
    for scalar in text.unicodeScalars {
      switch (scalar, scalar.properties.generalCategory) {
      // A label needs two backslashes for one. With four, no name reads like an escaped character.
      case ("\\", _): plain += #"\\\\"#
      case ("\"", _): plain += #"\""#
      case (_, .control), (_, .format), (_, .lineSeparator), (_, .paragraphSeparator): plain += "\\" + scalar.escaped(asASCII: true)
      default: plain.unicodeScalars.append(scalar)
      }
    }
    return plain
  }
}
