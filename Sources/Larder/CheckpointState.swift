/// What a commit queue knows of its checkpoints.
struct CheckpointState: Sendable {
  /// The commit that the last checkpoint (or open) left nothing behind of.
  var folded: UInt64
  var isIdleTimerSet = false
  var lastWrite = ContinuousClock.now
  /// Why the last automatic checkpoint failed, and the commit from which it may be tried again.
  var failure: RepositoryError?
  var retryFrom: UInt64 = 0
  /// How often in a row an automatic checkpoint has failed.
  var failureCount = 0

  /// How long the idle timer runs, in seconds: twice as long after each failure, up to 64 times.
  func pause(_ idle: Duration) -> Double {
    failureCount == 0 ? idle.timeInterval : max(idle.timeInterval, 0.05) * Double(1 << min(failureCount, 6))
  }

  init(folded: UInt64 = 0) { self.folded = folded }
}

extension Duration {
  /// In seconds.
  var timeInterval: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}
