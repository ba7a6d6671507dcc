/// A random history of several devices that edit and sync: the real engine, a server in memory, clocks and networks that cannot be trusted.
///
/// ```swift
/// let report = try await SyncSimulation(seed: 7).run()
/// #expect(report.problems.isEmpty, "seed \(report.seed)")
/// ```
///
/// At the end all devices are quiet and the network works; then every device must have what the server has within a few rounds, no insert
/// may be lost and no deletion undone, and counters must have counted each increment once.
public struct SyncSimulation: Sendable {
  /// A kind of event; a run of many histories should have met each.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    case insert, edit, increment, deletion, transaction, crashBefore, crashAfter, lostRequest, lostAnswer, lostPage, duplicate,
      lateDuplicate, editInFlight, partition, severalPages, purge, resync, restore, newHistory, copy, conflict
  }

  /// What a history has met, and what was wrong at its end.
  public struct Report: Sendable {
    /// The seed that repeats it.
    public let seed: UInt64
    /// The number of events of each kind.
    public internal(set) var events: [Event: Int] = [:]
    /// The invariants that did not hold, in words; empty for a history in which all is well.
    public internal(set) var problems: [String] = []
  }

  /// The seed.
  public let seed: UInt64

  /// Prepares a history; equal seeds give equal ones.
  public init(seed: UInt64) { self.seed = seed }

  /// Runs the history.
  ///
  /// - Throws: what opening a store in memory throws.
  public func run() async throws -> Report {
    try await SyncHistory(seed: seed).run()
  }
}
