public import Larder

/// A random history of several devices that edit and sync: the real engine, a server in memory, clocks and networks that cannot be trusted.
///
/// ```swift
/// let report = try await SyncSimulation(seed: 7).run()
/// #expect(report.problems.isEmpty, "seed \(report.seed)")
/// ```
///
/// At the end all devices are quiet and the network works; then every device must have stored what the server has within a few rounds and
/// have nothing left to say, no insert may be lost and no deletion undone, counters must have counted each increment once, what an app does
/// not know must have come through its edits, and messages that come once more must change nothing.
///
/// Of four histories one has apps of several versions, one a server that may go back to a backup; of eight one has copied stores, one
/// a server that refuses records, and one a server that takes few at once.
public struct SyncSimulation: Sendable {
  /// A kind of event; a run of many histories should have met each.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// Edits of the users.
    case insert, edit, increment, deletion, transaction
    /// The death of a process before or after one of its commits.
    case crashBefore, crashAfter
    /// The doings of the network. A server that dies before its commit is a lost request, one that dies after it a lost answer.
    case lostRequest, lostAnswer, lostPage, duplicate, lateDuplicate, delayedRequest, reordered, partition
    /// The events between a request and its answer: an edit, the exchange of another device.
    case editInFlight, interleaving
    /// The states that exchanges meet.
    case severalPages, conflict, purge, resync
    /// A server that goes back to a backup, devices that notice it, and stores that are copied.
    case restore, newHistory, copy
    /// Records in each of three scopes, clocks that are set years ahead or back, and devices that sign out.
    case threeScopes, clockJump, signOut
    /// Refusals: of records, of scopes for a time, of pushes that are too large; and conflicts that leave out what does not fit.
    case rejected, revoked, division, leftOut
    /// Devices that get a newer app, what older apps hold unread and delete, edits that wait for a newer app, records of older apps under
    /// a newer one, and edits of records with a member that the app does not know.
    case upgrade, newerRecord, newerDeletion, waitingEdit, olderRecord, unknownMember
  }

  /// The events of a history, and what was wrong at its end.
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

  private let backend: @Sendable (_ device: Int) throws -> any StorageBackend

  /// Prepares a history; equal seeds give equal ones.
  ///
  /// - Parameters:
  ///   - seed: The seed.
  ///   - backend: Makes the empty backend of a device, which is opened again after each death of its process. The devices of a history
  ///     have the numbers from 0. In memory unless given.
  public init(
    seed: UInt64,
    backend: @escaping @Sendable (_ device: Int) throws -> any StorageBackend = { _ in InMemoryBackend() }
  ) {
    (self.seed, self.backend) = (seed, backend)
  }

  /// Runs the history.
  ///
  /// - Throws: what making a backend throws, and opening a store over it.
  public func run() async throws -> Report {
    try await SyncHistory(seed: seed, backend: backend).run()
  }
}
