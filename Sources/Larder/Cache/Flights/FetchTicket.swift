internal import Synchronization

/// A gatherer of keys, which is told when it may start requests.
protocol FetchGathering: AnyObject, Sendable {
  func startRequests()
}

/// The keys of a group that have not yet arrived at a gatherer.
final class FetchGroupMembers: Sendable {
  private struct State: Sendable {
    var outstanding: Int
    var isFinished = false
    /// The gatherers where keys of the group wait.
    var gatherers: [ObjectIdentifier: any FetchGathering] = [:]
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(outstanding: count)) }

  /// Whether no key is waited for any more.
  var isComplete: Bool { state.withLock { $0.isFinished || $0.outstanding <= 0 } }

  /// Adds a key that is going to arrive.
  func add() { state.withLock { $0.outstanding += 1 } }

  /// Counts down, and starts the requests of the group with the last key.
  func remove(_ gatherer: (any FetchGathering)?) {
    start { state in
      state.outstanding -= 1
      if let gatherer { state.gatherers[ObjectIdentifier(gatherer)] = gatherer }
    }
  }

  /// Waits for no key any more.
  func finish() { start { $0.isFinished = true } }

  private func start(_ change: (inout State) -> Void) {
    let gatherers: [any FetchGathering] = state.withLock { state in
      change(&state)
      guard state.isFinished || state.outstanding <= 0 else { return [] }
      // They stay: a group of keys that are tried again may become incomplete and complete once more.
      return Array(state.gatherers.values)
    }
    for gatherer in gatherers { gatherer.startRequests() }
  }
}

/// The place of one fetch in a group: given up when its key arrives at a gatherer, or when it is sure that it will not.
final class FetchTicket: Sendable {
  @TaskLocal static var current: FetchTicket?

  private struct State: Sendable {
    var isUsed = false
    /// Whether a fetch has taken the ticket over from the call that brought it.
    var isTaken = false
    var failure: SharedFailure?
  }

  let group: FetchGroupMembers?
  private let state = Mutex(State())

  init(_ group: FetchGroupMembers? = nil) { self.group = group }

  /// The group that the key must wait for; `nil` after the place was given up, since nothing would tell of the group's end.
  var heldBy: FetchGroupMembers? { state.withLock { $0.isUsed } ? nil : group }

  /// Gives the place up: because the key has arrived at a gatherer, or because no key will come.
  func giveUp(at gatherer: (any FetchGathering)? = nil) {
    let isFirst = state.withLock { state in
      defer { state.isUsed = true }
      return !state.isUsed
    }
    if isFirst { group?.remove(gatherer) }
  }

  /// Gives the place up at the end of the call, unless a fetch has taken it over.
  func endCall() {
    if !state.withLock({ $0.isTaken }) { giveUp() }
  }

  /// Returns the ticket for a fetch that has begun: this one for the first, and one without a group for others.
  func taken() -> FetchTicket {
    let isFirst = state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken && !state.isUsed
    }
    return isFirst ? self : FetchTicket()
  }

  /// Notes that the key has failed in a request with others.
  func note(_ failure: SharedFailure) { state.withLock { $0.failure = failure } }

  /// The failure that the key shares with others of its request, if any.
  var failure: SharedFailure? { state.withLock { $0.failure } }
}

/// The failure of a request of several keys, so that those of them that are tried again go together again.
final class SharedFailure: Sendable {
  private struct State: Sendable {
    var random: Double?
    var groups: [Duration: FetchGroupMembers] = [:]
  }

  private let state = Mutex(State())

  /// Returns the random number for the wait before the next attempt: the same for all.
  func random(_ next: () -> Double) -> Double {
    state.withLock { state in
      let random = state.random ?? next()
      state.random = random
      return random
    }
  }

  /// Returns a ticket for the next attempt of a key, in the group of those that wait equally long.
  func ticket(after delay: Duration) -> FetchTicket {
    let group = state.withLock { state in
      let group = state.groups[delay] ?? FetchGroupMembers(0)
      state.groups[delay] = group
      return group
    }
    group.add()
    return FetchTicket(group)
  }
}
