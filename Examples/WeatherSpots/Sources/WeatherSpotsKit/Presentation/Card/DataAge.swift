/// The age and origin of shown data, and the reason why they were not refreshed.
public struct DataAge: Hashable, Sendable {
  /// The age, in seconds; negative when the clock was set back.
  public let seconds: Int
  /// The origin: "network", "memory" or "disk".
  public let origin: String
  /// Whether they are only the last known ones.
  public let isStale: Bool
  /// Whether they were recorded earlier and dated anew.
  public let isRecorded: Bool
  /// The reason why the data were not refreshed, in a few words; `nil` when no refresh was tried, or it succeeded.
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
