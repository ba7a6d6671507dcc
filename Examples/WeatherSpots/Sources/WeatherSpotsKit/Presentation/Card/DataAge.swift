/// How old shown data are, where they come from, and why they were not fetched anew.
public struct DataAge: Hashable, Sendable {
  /// The age, in seconds; negative when the clock was set back.
  public let seconds: Int
  /// Where they were found: "network", "memory" or "disk".
  public let origin: String
  /// Whether they are only the last known ones.
  public let isStale: Bool
  /// Whether they were recorded earlier and dated anew.
  public let isRecorded: Bool
  /// Why they were not fetched anew, in a few words; `nil` when that was not tried, or worked.
  public let problem: String?

  /// Makes an age.
  public init(seconds: Int, origin: String, isStale: Bool = false, isRecorded: Bool = false, problem: String? = nil) {
    self.seconds = seconds
    self.origin = origin
    self.isStale = isStale
    self.isRecorded = isRecorded
    self.problem = problem
  }

  /// The parts of the line, such as "2 h old", "from disk", "server unreachable".
  public var parts: [String] {
    let age = ForecastReport.words(forAge: seconds)
    return [isStale ? "STALE: \(age)" : age, "from \(origin)"] + (isRecorded ? ["recorded data"] : []) + (problem.map { [$0] } ?? [])
  }
}
