/// The findings of reading a whole store back from its files.
///
/// ```swift
/// let report = await store.verify()
/// for problem in report.problems { logger.error("\(problem)") }
/// ```
///
/// Nothing is changed by verifying: a problem in the files stays until the store is opened again, or restored from a backup. A failed
/// automatic checkpoint, or a failed look for the commits of other processes, stays until one succeeds.
///
/// ## Topics
///
/// ### Findings
///
/// - ``isSound``
/// - ``problems``
///
/// ### Extent
///
/// - ``commit``
/// - ``recordCount``
/// - ``tombstoneCount``
/// - ``duration``
public struct VerifyReport: Sendable {
  /// The newest commit in the files.
  public var commit: Revision
  /// The number of records that were read and found whole.
  public var recordCount: Int
  /// The number of tombstones of deleted records that were read and found whole.
  public var tombstoneCount: Int
  /// The problems, each with its file and offset where they are known; none in a sound store.
  public var problems: [RepositoryError]
  /// The time that it took.
  public var duration: Duration

  /// Whether no problem was found.
  public var isSound: Bool { problems.isEmpty }

  /// Makes a report; backends fill in their findings.
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
