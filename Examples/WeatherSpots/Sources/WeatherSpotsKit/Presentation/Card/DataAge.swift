/// The age and origin of shown data, and the reason why they were not refreshed.
struct DataAge: Hashable, Sendable {
  /// The age, in seconds; negative when the clock was set back.
  let seconds: Int
  /// The origin: "network", "memory" or "disk".
  let origin: String
  /// Whether they are only the last known ones.
  var isStale = false
  /// Whether they were recorded earlier and dated anew.
  var isRecorded = false
  /// The reason why the data were not refreshed, in a few words; `nil` when no refresh was tried, or it succeeded.
  var problem: String?

  /// The parts of the line, such as "2 h old", "from disk", "server unreachable".
  var parts: [String] {
    let age = ForecastReport.words(forAge: seconds)
    return [isStale ? "STALE: \(age)" : age, "from \(origin)"] + (isRecorded ? ["recorded data"] : []) + (problem.map { [$0] } ?? [])
  }
}
