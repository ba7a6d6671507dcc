/// A summary of one round of an ``AlertPipeline``: its counts and its problems.
public struct RoundReport: Hashable, Sendable {
  /// Number of watchers.
  public internal(set) var watchers = 0
  /// Number of clusters that the watchers form.
  public internal(set) var clusters = 0
  /// Number of calls to the provider.
  public internal(set) var calls = 0
  /// Number of clusters without an answer, including those for which no request was sent because it would have failed.
  public internal(set) var failedCalls = 0
  /// Number of clusters in places for which the provider offers no warnings.
  public internal(set) var notOffered = 0
  /// Number of clusters that wait because the daily limit of calls is used up.
  public internal(set) var postponed = 0
  /// Number of notices that were queued.
  public internal(set) var queued = 0
  /// Number of notices that were delivered.
  public internal(set) var delivered = 0
  /// Number of failed deliveries, one for each notice that a sink refused.
  public internal(set) var failedDeliveries = 0
  /// Number of notices whose warning expired before a sink accepted them.
  public internal(set) var lapsed = 0
  /// Number of notices that wait in the queue after the round.
  public internal(set) var waiting = 0
  /// Problems of the round, each on one line.
  public internal(set) var problems: Set<String> = []
}
