public import Larder

/// Random history of several devices that edit and sync, with the real engine, a server in memory, wrong clocks and lossy networks.
///
/// ```swift
/// let report = try await SyncSimulation(seed: 7).run()
/// #expect(report.problems.isEmpty, "seed \(report.seed)")
/// ```
///
/// At the end, the users are quiet and the network works. Then the history checks that:
///
/// - every device has stored the same records as the server within a few rounds, and sends nothing more,
/// - no insert is lost, and no deletion is undone,
/// - counters have counted each increment once,
/// - members that an app does not have in its type have survived its edits,
/// - repeated messages change nothing.
///
/// The seed decides the kind of history. Of 16 consecutive seeds, six have apps of several versions, and four a server that may be restored
/// from a backup. Two have copied stores, two a server that refuses records, and two a server with a small limit on pushes.
public struct SyncSimulation: Sendable {
  /// Kind of event in a history.
  ///
  /// Check that your seeds together have met each kind.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// Edits of the users.
    case insert, edit, increment, deletion, transaction
    /// Death of a process before or after one of its commits.
    case crashBefore, crashAfter
    /// Failures of the network.
    ///
    /// A lost request also stands for a server that dies before its commit, a lost answer for one that dies after it.
    case lostRequest, lostAnswer, lostPage, duplicate, lateDuplicate, delayedRequest, reordered, partition
    /// Events between a request and its answer: an edit, the exchange of another device.
    case editInFlight, interleaving
    /// States that exchanges meet: several pages, conflicts, purged tombstones, full passes.
    case severalPages, conflict, purge, resync
    /// Restores of the server from a backup, devices that notice one, and copies of stores.
    case restore, newHistory, copy
    /// Records in each of three scopes, clocks that are set years ahead or back, and devices that sign out.
    case threeScopes, clockJump, signOut
    /// Refused records, scopes that are forbidden for a time, pushes that are too large, and conflicts with records left out.
    case rejected, revoked, division, leftOut
    /// Upgrades of an app, and meetings of its versions.
    ///
    /// An older app holds unread records and deletes some, and its edits may wait for a newer app. A newer app reads records of older ones.
    /// An app edits a record with a member that its type does not have.
    case upgrade, newerRecord, newerDeletion, waitingEdit, olderRecord, unknownMember
  }

  /// Events and broken invariants of a history.
  public struct Report: Sendable {
    /// Seed that repeats the history.
    public let seed: UInt64
    /// Number of events of each kind.
    public internal(set) var events: [Event: Int] = [:]
    /// Descriptions of the invariants that did not hold.
    ///
    /// Empty if all of them held.
    public internal(set) var problems: [String] = []
  }

  /// Seed of the history.
  public let seed: UInt64

  private let backend: @Sendable (_ device: Int) throws -> any StorageBackend

  /// Prepares a history.
  ///
  /// Equal seeds give equal histories.
  ///
  /// - Parameters:
  ///   - seed: The seed, which decides everything in the history.
  ///   - backend: Makes the empty backend of a device, which is opened again after each death of its process. Devices are numbered from 0.
  ///     By default a backend in memory.
  public init(
    seed: UInt64,
    backend: @escaping @Sendable (_ device: Int) throws -> any StorageBackend = { _ in InMemoryBackend() }
  ) {
    (self.seed, self.backend) = (seed, backend)
  }

  /// Runs the history.
  ///
  /// - Throws: The error of making a backend or of opening a store over it. Broken invariants are in the report.
  public func run() async throws -> Report {
    // A new history for each run, so that a second run gives the same report.
    try await SyncHistory(seed: seed, backend: backend).run()
  }
}
