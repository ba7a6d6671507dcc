/// The counts and failures of one round of an ``AlertPipeline``.
public struct RoundReport: Hashable, Sendable {
  /// The number of watchers.
  public internal(set) var watchers = 0
  /// The number of clusters that the watchers form.
  public internal(set) var clusters = 0
  /// The number of calls to the provider.
  public internal(set) var calls = 0
  /// The number of clusters without an answer, those included for which asking would have been of no use.
  public internal(set) var failedCalls = 0
  /// The number of clusters in places for which the provider has no warnings.
  public internal(set) var notOffered = 0
  /// The number of clusters that wait because a quota is exhausted.
  public internal(set) var postponed = 0
  /// The number of notices that were queued.
  public internal(set) var queued = 0
  /// The number of notices that were delivered.
  public internal(set) var delivered = 0
  /// The number of notices that a sink refused.
  public internal(set) var failedDeliveries = 0
  /// The number of notices whose warning expired before a sink accepted them.
  public internal(set) var lapsed = 0
  /// The number of notices that wait in the queue.
  public internal(set) var waiting = 0
  /// The failures of the round, each on one line.
  public internal(set) var problems: Set<String> = []

  /// Makes the report of a round that did nothing.
  public init() {}
}
