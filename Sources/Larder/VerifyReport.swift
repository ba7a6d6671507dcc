/// What reading a whole store back from its files found.
public struct VerifyReport: Sendable {
  /// The newest commit in the files.
  public var commit: Revision
  /// How many records were read and found whole.
  public var recordCount: Int
  /// How many tombstones of deleted records were read and found whole.
  public var tombstoneCount: Int
  /// Everything that is wrong, each with its file and offset where they are known.
  public var problems: [RepositoryError]
  /// How long it took.
  public var duration: Duration

  /// Whether nothing is wrong.
  public var isSound: Bool { problems.isEmpty }

  /// Makes a report; backends fill in what they found.
  public init(
    commit: Revision = .zero, recordCount: Int = 0, tombstoneCount: Int = 0, problems: [RepositoryError] = [],
    duration: Duration = .zero
  ) {
    self.commit = commit
    self.recordCount = recordCount
    self.tombstoneCount = tombstoneCount
    self.problems = problems
    self.duration = duration
  }
}
