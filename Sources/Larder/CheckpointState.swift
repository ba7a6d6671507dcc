/// What a commit queue knows of its checkpoints.
struct CheckpointState: Sendable {
  /// The commit that the last checkpoint (or open) left nothing behind of.
  var folded: UInt64
  var isIdleTimerSet = false
  /// Whether a checkpoint goes on beside commits.
  var isRunning = false
  var lastWrite = ContinuousClock.now
  /// Why the last automatic checkpoint failed, and the commit from which it may be tried again.
  var failure: RepositoryError?
  var retryFrom: UInt64 = 0

  init(folded: UInt64 = 0) { self.folded = folded }
}

extension Duration {
  /// In seconds.
  var timeInterval: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}
