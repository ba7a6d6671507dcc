internal import Synchronization

/// A group of calls to caches, made one by one, whose keys are fetched in one request.
///
/// ```swift
/// let group = FetchGroup(2)
/// async let now = group.run { try await current.value(for: place) }
/// async let later = group.run { try await hourly.value(for: place) }
/// print(try await now, try await later)      // one request, if both caches share a GatheredSource
/// ```
///
/// A request with a key of the group waits until each call of the group has handed its key over or needs no request. A call needs no
/// request if it was answered from storage, joined a running fetch, failed before, or was cancelled. Keys of other callers do not wait for
/// the group. ``CachedRepository/values(for:policy:maxConcurrentFetches:)`` and ``CachedRepository/prefetch(_:)`` make groups of their own.
///
/// - Important: Make as many calls of ``run(_:)`` as the group was made for, all at the same time, because each waits for the others. Put
///   nothing between a cache and the ``GatheredSource`` where one key waits for another, such as a ``ConcurrencyLimit`` of your own. A key
///   that must wait in the library's own ``HostLimits`` leaves the group before it waits.
public final class FetchGroup: Sendable {
  let members: FetchGroupMembers

  /// Makes a group of calls.
  ///
  /// - Parameter count: Number of calls of ``run(_:)`` that you will make.
  public init(_ count: Int) { members = FetchGroupMembers(max(count, 0)) }

  // If fewer calls were made than announced, the requests of the other calls must not wait for the missing ones forever.
  deinit { members.finish() }

  /// Runs a call as one of the calls of the group.
  ///
  /// The first key that the call fetches belongs to the group.
  /// - Throws: The error of the call.
  public func run<Result>(_ call: () async throws -> Result) async rethrows -> Result {
    let ticket = FetchTicket(members)
    defer { ticket.endCall() }
    return try await FetchTicket.$current.withValue(ticket) { try await call() }
  }
}

/// An object that gathers keys into requests, and that a ``FetchGroup`` calls when the group is complete, so that the requests start.
protocol FetchGathering: AnyObject, Sendable {
  func startRequests()
}

/// Countdown of the keys of a ``FetchGroup`` that have not yet arrived at a gatherer.
final class FetchGroupMembers: Sendable {
  private struct State: Sendable {
    var outstanding: Int
    var isFinished = false
    /// Gatherers (which combine keys into one request) at which keys of the group wait.
    var gatherers: [ObjectIdentifier: any FetchGathering] = [:]
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(outstanding: count)) }

  /// True if no key of the group is outstanding.
  var isComplete: Bool { state.withLock { $0.isFinished || $0.outstanding <= 0 } }

  /// Adds a key that will arrive at a gatherer later.
  func add() { state.withLock { $0.outstanding += 1 } }

  /// Counts a key as arrived at a gatherer, or as certain not to arrive if `gatherer` is `nil`.
  ///
  /// The last outstanding key starts the requests of the group.
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
      // The gatherers stay registered, since a group of retried keys may become incomplete and complete again.
      return Array(state.gatherers.values)
    }
    // The gatherers are called outside the lock, because `startRequests` reads `isComplete` of the group, which takes the same lock.
    for gatherer in gatherers { gatherer.startRequests() }
  }
}

/// The place of one fetch in a ``FetchGroup``.
///
/// The place is given up when the key arrives at a gatherer, or when the key is certain not to arrive.
final class FetchTicket: Sendable {
  @TaskLocal static var current: FetchTicket?

  private struct State: Sendable {
    var isUsed = false
    /// True if a fetch has taken the ticket over from the call that carried it.
    var isTaken = false
    var failure: SharedFailure?
  }

  let group: FetchGroupMembers?
  private let state = Mutex(State())

  init(_ group: FetchGroupMembers? = nil) { self.group = group }

  /// The group whose other keys a request must wait for, or `nil` once the key's place in the group was given up.
  ///
  /// After the place was given up, no later event would end a wait for the group.
  var heldBy: FetchGroupMembers? { state.withLock { $0.isUsed } ? nil : group }

  /// Gives the place in the group up, because the key has arrived at a gatherer or will never arrive.
  func giveUp(at gatherer: (any FetchGathering)? = nil) {
    let isFirst = state.withLock { state in
      defer { state.isUsed = true }
      return !state.isUsed
    }
    // A ticket counts down once only. A second countdown would complete the group before all of its keys have arrived.
    if isFirst { group?.remove(gatherer) }
  }

  /// Gives the place in the group up at the end of the call, unless a fetch has taken the ticket over.
  func endCall() {
    // A fetch that has taken the ticket may continue after the call, and gives the place up itself.
    if !state.withLock({ $0.isTaken }) { giveUp() }
  }

  /// Returns the ticket for a fetch that begins: this ticket for the first fetch, and a ticket without a group for later fetches.
  func taken() -> FetchTicket {
    let isFirst = state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken && !state.isUsed
    }
    // A call may fetch several keys, but only the first of them belongs to the group of the call.
    return isFirst ? self : FetchTicket()
  }

  /// Keeps the failure of a request that the key shares with other keys.
  func note(_ failure: SharedFailure) { state.withLock { $0.failure = failure } }

  /// The failure that the key shares with the other keys of its last request, or `nil`.
  var failure: SharedFailure? { state.withLock { $0.failure } }
}

/// The failure of a request for several keys.
///
/// Through this object, the keys that are retried after the same wait form a group again.
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

  /// Returns a ticket for the next attempt of a key, in the group of the keys that wait equally long.
  func ticket(after delay: Duration) -> FetchTicket {
    let group = state.withLock { state in
      let group = state.groups[delay] ?? FetchGroupMembers(0)
      state.groups[delay] = group
      return group
    }
    // The key is added outside the lock of this failure, since the group has a lock of its own.
    group.add()
    return FetchTicket(group)
  }
}
