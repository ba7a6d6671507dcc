/// What a commit queue knows of its checkpoints.
struct CheckpointState: Sendable {
  /// The commit that the last checkpoint (or open) left nothing behind of.
  var folded: UInt64
  var isIdleTimerSet = false
  /// Whether a checkpoint runs, beside commits or between two.
  var isRunning = false
  /// The callers whose checkpoint begins when the one that runs has ended.
  var waiting: [CheckedContinuation<Void, Never>] = []
  /// The commit up to which folding was not worth what it rewrites.
  var postponed: UInt64 = 0
  var lastWrite = ContinuousClock.now
  /// Why the last automatic checkpoint failed, and the commit from which it may be tried again.
  var failure: RepositoryError?
  var retryFrom: UInt64 = 0
  /// How often in a row an automatic checkpoint has failed.
  var failureCount = 0
  /// Whether the last commit of a value has found the disk full.
  var isDiskFull = false

  /// Returns how long the idle timer runs, in seconds: twice as long after each failure, up to 64 times.
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

  init(folded: UInt64 = 0) { self.folded = folded }
}
