public import Larder

/// Random history of several devices that edit and sync, with the real engine, a server in memory, wrong clocks and lossy networks.
///
/// ```swift
/// let report = try await SyncSimulation(seed: 7).run()
/// #expect(report.problems.isEmpty, "seed \(report.seed)")
/// ```
///
/// In the last phase of a simulated history, the users make no more edits and the network loses nothing. After this phase the history
/// checks that:
///
/// - every device has stored the same records as the server within a few rounds, and sends nothing more,
/// - no insert is lost, and no deletion is undone,
/// - counters have counted each increment once,
/// - members of a record that an app does not have in its type are still there after its edits,
/// - repeated messages change nothing.
///
/// After a restore of the server or a copy of a store, the history checks neither deletions nor counters. A restored server may have lost
/// deletions and increments, and a copied store may send an increment twice.
///
/// The seed decides the kind of history. Of 16 consecutive seeds, six have apps of several versions, and four have a server that may be
/// restored from a backup. Two seeds have copied stores, two have a server that refuses records, and two have a server with a small limit
/// on pushes.
public struct SyncSimulation: Sendable {
  /// Kind of event in a simulated history.
  ///
  /// Check in the reports that the histories of your seeds together have had each kind of event.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// Edits by the users of the simulated devices.
    case insert, edit, increment, deletion, transaction
    /// Death of a process before or after one of its commits.
    case crashBefore, crashAfter
    /// Failures of the network.
    ///
    /// A lost request has the same effect as a server that dies before its commit, and a lost answer the same as a server that dies after
    /// its commit.
    case lostRequest, lostAnswer, lostPage, duplicate, lateDuplicate, delayedRequest, reordered, partition
    /// Events between a request and its answer: an edit of the waiting device's user, and the exchange of another device.
    case editInFlight, interleaving
    /// States that an exchange has to handle: several pages, conflicts, purged tombstones, full passes.
    case severalPages, conflict, purge, resync
    /// Restores of the server from a backup, devices that receive the server's new history, and copies of stores.
    case restore, newHistory, copy
    /// Records in each of three scopes, clocks that are set years ahead or back, and devices that sign out.
    case threeScopes, clockJump, signOut
    /// Refused records, scopes that are forbidden for a time, pushes that are too large, and conflicts with records left out.
    case rejected, revoked, division, leftOut
    /// Upgrades of an app, and encounters of an app's version with records of another version.
    ///
    /// An older app stores records of a newer app without reading them, deletes some, and may keep edits that wait for the newer app. A
    /// newer app reads records of older apps. An app edits a record with a member that the app's type does not have.
    case upgrade, newerRecord, newerDeletion, waitingEdit, olderRecord, unknownMember
  }

  /// Events and broken invariants of a simulated history.
  public struct Report: Sendable {
    /// Seed that repeats the history.
    public let seed: UInt64
    /// Number of events of each kind in the history.
    public internal(set) var events: [Event: Int] = [:]
    /// Descriptions of the invariants that did not hold.
    ///
    /// The array is empty if all invariants held.
    public internal(set) var problems: [String] = []
  }

  /// Seed of the random history.
  public let seed: UInt64

  private let backend: @Sendable (_ device: Int) throws -> any StorageBackend

  /// Prepares a random history from a seed.
  ///
  /// Equal seeds give equal histories.
  ///
  /// - Parameters:
  ///   - seed: The seed, which decides everything in the history.
  ///   - backend: Makes the empty backend of a device, which is opened again after each death of its process. Devices are numbered from 0.
  ///     The default is a backend in memory.
  public init(
    seed: UInt64,
    backend: @escaping @Sendable (_ device: Int) throws -> any StorageBackend = { _ in InMemoryBackend() }
  ) {
    (self.seed, self.backend) = (seed, backend)
  }

  /// Runs the history, and returns its events and broken invariants.
  ///
  /// - Throws: The error of making a backend or of opening a store over it. Broken invariants are listed in the report and not thrown.
  public func run() async throws -> Report {
    // Each run makes a new `SyncHistory`, so that a second run gives the same report.
    try await SyncHistory(seed: seed, backend: backend).run()
  }
}
