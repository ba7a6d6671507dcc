/// What a round has done.
public struct RoundReport: Hashable, Sendable {
  /// How many are watching.
  public internal(set) var watchers = 0
  /// How many clusters they are.
  public internal(set) var clusters = 0
  /// How often the provider was asked.
  public internal(set) var calls = 0
  /// For how many clusters there is no answer, those included for which asking would have been of no use.
  public internal(set) var failedCalls = 0
  /// How many clusters are in places for which the provider has no warnings.
  public internal(set) var notOffered = 0
  /// How many clusters must wait because a quota is spent.
  public internal(set) var postponed = 0
  /// How many notices were queued.
  public internal(set) var queued = 0
  /// How many notices were handed over.
  public internal(set) var delivered = 0
  /// How many notices a sink has not taken.
  public internal(set) var failedDeliveries = 0
  /// How many notices were not taken until their warning expired.
  public internal(set) var lapsed = 0
  /// How many notices wait in the queue.
  public internal(set) var waiting = 0
  /// What went wrong, each on one line.
  public internal(set) var problems: Set<String> = []

  /// Makes the report of a round that did nothing.
  public init() {}
}
