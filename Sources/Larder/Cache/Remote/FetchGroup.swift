internal import Synchronization

/// A group of separate calls to caches whose keys are fetched in one request.
///
/// ```swift
/// let group = FetchGroup(2)
/// async let now = group.run { try await current.value(for: place) }
/// async let later = group.run { try await hourly.value(for: place) }
/// print(try await now, try await later)      // one request, if both caches share a GatheredSource
/// ```
///
/// A request with a key of the group waits until each call of the group has passed its key to the source or needs no request. A call needs
/// no request if it was answered from storage, joined a running fetch, failed before, or was cancelled. Keys of other callers do not wait
/// for the group. ``CachedRepository/values(for:policy:maxConcurrentFetches:)`` and ``CachedRepository/prefetch(_:)`` make groups of their
/// own.
///
/// - Important: Make as many calls of ``run(_:)`` as the group was made for, all at the same time, because each call waits for the others.
///   Put nothing between a cache and the ``GatheredSource`` where one key waits for another, such as a ``ConcurrencyLimit`` of your own. A
///   key that must wait in the library's own ``HostLimits`` leaves the group before it waits.
public final class FetchGroup: Sendable {
  let members: FetchGroupMembers

  /// Makes a group for a number of calls to caches.
  ///
  /// - Parameter count: Number of calls of ``run(_:)`` that you will make.
  public init(_ count: Int) { members = FetchGroupMembers(max(count, 0)) }

  // If `run` was called less often than the group was made for, the requests of the group must not wait forever for the missing calls.
  deinit { members.finish() }

  /// Runs a call to a cache as one of the calls of the group.
  ///
  /// The first key that the closure `call` fetches belongs to the group.
  /// - Throws: The error of the closure `call`.
  public func run<Result>(_ call: () async throws -> Result) async rethrows -> Result {
    let ticket = FetchTicket(members)
    defer { ticket.endCall() }
    return try await FetchTicket.$current.withValue(ticket) { try await call() }
  }
}

/// An object that gathers keys into requests, and starts the requests when a ``FetchGroup`` reports that all its keys have arrived.
protocol FetchGathering: AnyObject, Sendable {
  func startRequests()
}

/// Countdown of the keys of a ``FetchGroup`` that have not yet arrived at a gatherer (an object that combines keys into requests).
final class FetchGroupMembers: Sendable {
  private struct State: Sendable {
    var outstanding: Int
    var isFinished = false
    /// Gatherers (objects that combine keys into requests) at which keys of the group wait.
    var gatherers: [ObjectIdentifier: any FetchGathering] = [:]
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(outstanding: count)) }

  /// True if the requests of the group need not wait for further keys of the group.
  var isComplete: Bool { state.withLock { $0.isFinished || $0.outstanding <= 0 } }

  /// Adds a key to the group, so that the requests of the group wait until the key arrives.
  func add() { state.withLock { $0.outstanding += 1 } }

  /// Counts a key as arrived at a gatherer (an object that combines keys into requests), or as certain not to arrive if `gatherer` is
  /// `nil`.
  ///
  /// When the last missing key of the group is counted, the requests of the group start.
  func remove(_ gatherer: (any FetchGathering)?) {
    start { state in
      state.outstanding -= 1
      if let gatherer { state.gatherers[ObjectIdentifier(gatherer)] = gatherer }
    }
  }

  /// Ends the wait for all outstanding keys of the group, and starts the requests of the group.
  func finish() { start { $0.isFinished = true } }

  /// Applies a change to the state, and starts the requests of the group if the group is complete afterwards.
  private func start(_ change: (inout State) -> Void) {
    let gatherers: [any FetchGathering] = state.withLock { state in
      change(&state)
      guard state.isFinished || state.outstanding <= 0 else { return [] }
      // The list of gatherers (objects that combine keys into requests) is kept, since a group of retried keys may get another key and
      // become complete again.
      return Array(state.gatherers.values)
    }
    // `startRequests` is called outside the lock, because it reads `isComplete` of the group, which takes the same lock.
    for gatherer in gatherers { gatherer.startRequests() }
  }
}

/// The ticket of one fetch in a ``FetchGroup``, for which the requests of the group wait until the ticket is given up.
///
/// A ticket is given up when the key of its fetch arrives at the source that combines keys, or when the key is certain not to arrive.
final class FetchTicket: Sendable {
  @TaskLocal static var current: FetchTicket?

  private struct State: Sendable {
    var isUsed = false
    /// True if a fetch has taken the ticket over from the call of ``FetchGroup/run(_:)``.
    var isTaken = false
    var failure: SharedFailure?
  }

  let group: FetchGroupMembers?
  private let state = Mutex(State())

  init(_ group: FetchGroupMembers? = nil) { self.group = group }

  /// The group whose other keys a request with the ticket's key must wait for, or `nil` once the ticket was given up.
  ///
  /// After a ticket was given up, its group starts no further request for the ticket's fetch, so a second wait for the group might never
  /// end.
  var heldBy: FetchGroupMembers? { state.withLock { $0.isUsed } ? nil : group }

  /// Gives up the ticket of a key in a ``FetchGroup``, because the key has arrived at a gatherer (an object that combines keys into
  /// requests) or will never arrive.
  func giveUp(at gatherer: (any FetchGathering)? = nil) {
    let isFirst = state.withLock { state in
      defer { state.isUsed = true }
      return !state.isUsed
    }
    // Each ticket counts the missing keys of its ``FetchGroup`` down once. If a ticket counted twice, the group would be complete before
    // all of its keys have arrived.
    if isFirst { group?.remove(gatherer) }
  }

  /// Gives up the ticket at the end of the call of ``FetchGroup/run(_:)``, unless a fetch has taken the ticket over.
  func endCall() {
    // A fetch that has taken the ticket over may continue after the call of `run`, and gives up the ticket itself.
    if !state.withLock({ $0.isTaken }) { giveUp() }
  }

  /// Returns the ticket for a fetch that begins: this ticket for the first fetch of a call, and a ticket without a group for later fetches.
  func taken() -> FetchTicket {
    let isFirst = state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken && !state.isUsed
    }
    // A call may fetch several keys, but only the first of them belongs to the group of the call.
    return isFirst ? self : FetchTicket()
  }

  /// Stores the failure of the last request for the key, which the other keys of that request share.
  func note(_ failure: SharedFailure) { state.withLock { $0.failure = failure } }

  /// The failure that the key shares with the other keys of its last request, or `nil`.
  var failure: SharedFailure? { state.withLock { $0.failure } }
}

/// The failure of a request for several keys.
///
/// Keys of the request that are retried after the same wait form a group again, so that they share the next request, too.
final class SharedFailure: Sendable {
  private struct State: Sendable {
    var random: Double?
    var groups: [Duration: FetchGroupMembers] = [:]
  }

  private let state = Mutex(State())

  /// Returns the random number for the wait before the next attempt, which is the same for all keys of the request.
  func random(_ next: () -> Double) -> Double {
    state.withLock { state in
      let random = state.random ?? next()
      state.random = random
      return random
    }
  }

  /// Returns a ticket for the next attempt of a key, in a group with the other keys of the request that wait equally long.
  func ticket(after delay: Duration) -> FetchTicket {
    let group = state.withLock { state in
      let group = state.groups[delay] ?? FetchGroupMembers(0)
      state.groups[delay] = group
      return group
    }
    // The key is added to the group outside the lock of the `SharedFailure`, since the group has a lock of its own.
    group.add()
    return FetchTicket(group)
  }
}
