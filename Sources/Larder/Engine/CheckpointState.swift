/// The checkpoints of a store: how far it is folded, and when the next one is due.
struct CheckpointState: Sendable {
  /// The newest commit that is folded into the main file already.
  var folded: UInt64 = 0
  var isIdleTimerSet = false
  /// The newest commit at which folding was not worth what it rewrites.
  var postponed: UInt64 = 0
  var lastWrite = ContinuousClock.now
  /// The reason why the last automatic checkpoint failed.
  var failure: RepositoryError?
  /// The commit from which a failed one is tried again.
  var retryFrom: UInt64 = 0
  /// The number of automatic checkpoints that have failed in a row.
  var failureCount = 0
  /// Whether the last commit, of values or of deletions, has found the disk full: the next deletion then begins by making room for itself.
  var isDiskFull = false

  /// Returns the time of the idle timer in seconds: twice as long after each failure, up to 64 times.
  func pause(_ idle: Duration) -> Double {
    failureCount == 0 ? idle.inSeconds : max(idle.inSeconds, 0.05) * Double(1 << min(failureCount, 6))
  }

  /// Notes that everything up to a commit is in the main file.
  mutating func noteFolded(_ commit: UInt64) {
    folded = max(folded, commit)
    failure = nil
    failureCount = 0
    retryFrom = 0
  }
}
