/// Age and origin of the shown data, with the reason if a refresh failed.
struct DataAge: Hashable, Sendable {
  /// Age in seconds, negative after the clock was set back.
  let seconds: Int
  /// Origin of the data: "network", "memory" or "disk".
  let origin: String
  /// Whether the data are stale, that is expired or left over from a failed refresh.
  var isStale = false
  /// Whether the data are a recording with new dates.
  var isRecorded = false
  /// Reason for the failed refresh in a few words, or `nil` if no refresh was tried or the refresh succeeded.
  var problem: String?

  /// Parts of the card's line about the data, such as "2 h old", "from disk", "server unreachable".
  var parts: [String] {
    let age = ForecastReport.words(forAge: seconds)
    return [isStale ? "STALE: \(age)" : age, "from \(origin)"] + (isRecorded ? ["recorded data"] : []) + (problem.map { [$0] } ?? [])
  }
}
