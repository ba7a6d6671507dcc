internal import Synchronization

/// The running fetches of a cache, single-flight: callers of one key share one fetch and its result.
///
/// A *flight* is one fetch that several callers may share: the request with its retries, and the commit of the result. Joining, leaving,
/// ending and invalidating a flight each take the same lock once, so each is atomic for the other callers.
///
/// When its last caller leaves, a flight is cancelled. If the source ignores the cancellation, the flight continues and is called
/// *abandoned*. If one abandoned flight of a key runs, a new caller begins another flight beside it. If two abandoned flights of a key run,
/// a new caller waits for the newer flight and gets its result. If that abandoned flight fails or was invalidated before, the caller looks
/// the key up again and may begin another flight.
///
/// `hasChanged` and `body` run with the lock of the flights held, and may take the lock of ``CacheState``. Code that holds the lock of
/// ``CacheState`` must not call the methods of `Flights`, or two threads could wait for each other.
final class Flights<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
  /// The work of a flight: requests the value of a key, and stores the value if the flight with the number `flight` may still store it.
  typealias Fetch = @Sendable (_ flight: UInt64, _ ticket: FetchTicket) async throws -> Entry

  /// The reason why a caller no longer waits for a flight.
  enum Outcome: Sendable {
    case ended(Result<Entry, any Error>)
    case timedOut
    case cancelled
    /// A newer version was stored since the caller's lookup, or an abandoned flight has ended without a result.
    ///
    /// On `changed`, the caller looks the key up again.
    case changed
  }

  fileprivate typealias Waiter = OneShot<Outcome>

  /// A running fetch with its task and its waiters.
  fileprivate struct Flight: Sendable {
    let task: Task<Void, Never>
    /// True if the result of the flight may no longer be stored.
    var isInvalidated = false
    var waiters: [ObjectIdentifier: Waiter] = [:]
    /// True if the flight continues without a waiter: for a refresh in the background, or after a time-out.
    var isKept = false
    /// True if the flight has a waiter, or continues without one.
    var isWanted: Bool { !waiters.isEmpty || isKept }
    /// Time at which the last caller left and the flight was cancelled, or `nil`.
    ///
    /// A later caller may still join the cancelled flight and wait for its end.
    var abandonedAt: Duration?
    /// True if the flight was already invalidated when its present callers joined.
    ///
    /// The callers of such a flight must look the key up again.
    var isOutdated = false
  }

  fileprivate struct State: Sendable {
    /// Flights under way, by number.
    var flights: [UInt64: Flight] = [:]
    /// Number of the flight that new callers of a key join.
    var current: [Key: UInt64] = [:]
    var last: UInt64 = 0
    /// Numbers of the abandoned flights of each key that still run, the newest last.
    var abandoned: [Key: [UInt64]] = [:]
    /// Keys whose provider has asked for a pause (`Retry-After`), with the end of the pause.
    var holdOffs = HoldOffs<Key>()
    /// Keys whose last flight has failed, with the end of their back-off.
    ///
    /// A key is not refreshed in the background before its back-off ends.
    var backOffs = HoldOffs<Key>(holdsAllWhenFull: true)
  }

  /// Number of abandoned flights of a key that may run beside a new flight.
  fileprivate static var abandonedLimit: Int { 1 }
  /// Time after which an abandoned flight no longer counts against ``abandonedLimit``, although the flight may still run.
  fileprivate static var abandonedTime: Duration { .seconds(60) }

  private let clock: any WallClock
  /// Time between a failed flight and the next refresh of its key in the background.
  private let backOff: Duration
  private let state = Mutex(State())

  init(clock: any WallClock, backOff: Duration) {
    self.clock = clock
    self.backOff = backOff
  }

  // MARK: Joining

  /// Joins the flight of a key, begins one if there is none, and waits for its end.
  ///
  /// - Parameters:
  ///   - timeout: Longest wait of this caller. A flight continues after the time-out of a caller.
  ///   - hasChanged: True if the key has another version than the caller's lookup found. Then no flight begins and the outcome is
  ///     `.changed`.
  ///   - fetch: Work of the flight, if one begins.
  nonisolated(nonsending) func join(
    _ key: Key, timeout: Duration?, unless hasChanged: () -> Bool, fetch: @escaping Fetch
  ) async -> Outcome {
    if Task.isCancelled { return .cancelled }
    let waiter = Waiter()
    guard let flight = enter(key, waiter, unless: hasChanged, fetch: fetch) else { return .changed }
    let timer = timeout.map { clock.after($0) { [self] in timeOut(waiter, of: flight) } }
    defer { timer?.cancel() }
    return await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      leave(flight, of: key, waiter: waiter)
    }
  }

  /// Begins a flight without a waiter, or lets the key's running flight continue without a waiter.
  func begin(_ key: Key, unless hasChanged: () -> Bool, fetch: @escaping Fetch) {
    enter(key, nil, unless: hasChanged, fetch: fetch)
  }

  /// Finds or begins the flight of a key, adds the waiter to it, and returns its number, or `nil` if no flight may begin.
  @discardableResult private func enter(
    _ key: Key, _ waiter: Waiter?, unless hasChanged: () -> Bool, fetch: @escaping Fetch
  ) -> UInt64? {
    let uptime = clock.uptime
    var isBegun = false
    // A call that begins no flight ends its ``FetchTicket``, which counts one key of a ``FetchGroup``. Otherwise the group's request would
    // wait for this key forever.
    defer { if !isBegun { FetchTicket.current?.endCall() } }
    return state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        // `hasChanged` runs under this lock. A flight stores its result before it leaves `current`, so a flight that ended since the lookup
        // counts as a change.
        if hasChanged() { return nil }
        // A flight of the key may have failed after the caller checked `mayRefresh`, so the back-off is checked again under the lock.
        if waiter == nil, state.isHeld(key, uptime) { return nil }
        if let old = state.rejoin(key, uptime) {
          id = old
        } else {
          // An abandoned flight of the key must not store an older value over the value of the new flight.
          state.invalidateFlights(of: key)
          state.last += 1
          id = state.last
          let ticket = FetchTicket.current?.taken() ?? FetchTicket()
          let task = Task { [self, id] in await run(id, of: key, ticket: ticket, fetch: fetch) }
          isBegun = true
          state.flights[id] = Flight(task: task)
        }
        state.current[key] = id
      }
      if let waiter {
        state.flights[id]?.waiters[ObjectIdentifier(waiter)] = waiter
      } else {
        state.flights[id]?.isKept = true
      }
      return id
    }
  }

  /// Ends the wait of a caller whose task was cancelled.
  ///
  /// If the flight has no other waiter and is not kept, the flight is cancelled too.
  private func leave(_ id: UInt64, of key: Key, waiter: Waiter) {
    let uptime = clock.uptime
    let task: Task<Void, Never>? = state.withLock { state in
      // If the flight no longer has this waiter, the flight has ended or the wait has timed out, and that outcome stands.
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return nil }
      guard let flight = state.flights[id], flight.waiters.isEmpty, !flight.isKept else { return nil }
      // A cancelled flight leaves `current` at once, so that the next caller begins a new flight and does not wait for the cancelled one.
      if state.current[key] == id { state.current[key] = nil }
      // If callers join and leave an abandoned flight again, its `abandonedAt` stays the time of the first cancellation. Otherwise a source
      // that ignores cancellation could block a key for more than a minute.
      state.flights[id]?.abandonedAt = flight.abandonedAt ?? uptime
      state.abandoned[key, default: []].append(id)
      return flight.task
    }
    // The flight is cancelled outside the lock, because cancelling a task runs the cancellation handlers of the source.
    task?.cancel()
    waiter.resolve(.cancelled)
  }

  /// Ends the wait of one caller and lets the flight continue for the others, or without a waiter.
  private func timeOut(_ waiter: Waiter, of id: UInt64) {
    state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return }
      state.flights[id]?.isKept = true
    }
    waiter.resolve(.timedOut)
  }

  // MARK: Flying

  /// Runs a flight from beginning to end, away from every actor, and resumes its waiters.
  @concurrent private func run(_ id: UInt64, of key: Key, ticket: FetchTicket, fetch: Fetch) async {
    let result: Result<Entry, any Error>
    do { result = .success(try await fetch(id, ticket)) } catch { result = .failure(error) }
    let uptime = clock.uptime
    let flight: Flight? = state.withLock { state in
      // The back-off is set and the flight is removed under one lock. Between the two steps, a refresh in the background could otherwise
      // begin in spite of the failure.
      if state.mayStore(id) { state.noteHolds(of: key, after: result, backOff: backOff, now: uptime) }
      return state.remove(id, of: key)
    }
    guard let flight else { return }
    var outcome = Outcome.ended(result)
    // If a flight was cancelled, its present callers joined it after the cancellation. The failure of a cancelled flight may come from the
    // cancellation, so its callers look the key up again.
    if flight.abandonedAt != nil {
      if case .failure = result { outcome = .changed }
      if flight.isOutdated { outcome = .changed }
    }
    for waiter in flight.waiters.values { waiter.resolve(outcome) }
  }

  /// True if a flight has a waiter, or continues without one.
  func isWanted(_ id: UInt64) -> Bool { state.withLock { $0.flights[id]?.isWanted ?? false } }

  // MARK: Invalidating

  /// True if the result of a flight may still be stored.
  func mayStore(_ id: UInt64) -> Bool { state.withLock { $0.mayStore(id) } }

  /// Passes to `body` whether the result of a flight may be stored, with the lock of the flights held.
  ///
  /// No flight is invalidated until `body` returns.
  func checkingStorable<Result>(_ id: UInt64, _ body: (_ mayStore: Bool) -> Result) -> Result {
    state.withLock { body($0.mayStore(id)) }
  }

  /// Forbids the flights of a key to store their results.
  ///
  /// The waiters of the flights still get the results.
  func invalidateFlights(of key: Key) { state.withLock { $0.invalidateFlights(of: key) } }

  /// Forbids all flights to store their results.
  ///
  /// The waiters of the flights still get the results.
  func invalidateAllFlights() { state.withLock { $0.invalidateAllFlights() } }

  // MARK: Leaving keys alone

  /// True if a key may be refreshed in the background: the key has a flight to join, or no hold-off and no back-off.
  func mayRefresh(_ key: Key) -> Bool {
    let uptime = clock.uptime
    return state.withLock { $0.current[key] != nil || !$0.isHeld(key, uptime) }
  }

  /// Returns the error with which a provider asked for a pause, or `nil` while a flight of the key runs or after the pause.
  func holdOffError(of key: Key) -> (any Error)? {
    let uptime = clock.uptime
    return state.withLock { $0.current[key] == nil ? $0.holdOffs.error(key, uptime) : nil }
  }

  /// Ends the hold-off and the back-off of a key.
  func releaseHolds(of key: Key) { state.withLock { $0.releaseHolds(of: key) } }

  /// Ends the hold-offs and back-offs of all keys.
  func releaseAllHolds() { state.withLock { ($0.holdOffs, $0.backOffs) = (.init(), .init(holdsAllWhenFull: true)) } }

  // MARK: For tests

  /// Number of waiters of each flight, in no order.
  var waiterCounts: [Int] { state.withLock { $0.flights.values.map(\.waiters.count) } }
  /// Number of flights that continue without a waiter.
  var keptCount: Int { state.withLock { $0.flights.values.count { $0.isKept && $0.waiters.isEmpty } } }
  /// True if no flight runs, not even an abandoned one.
  var isEmpty: Bool { state.withLock { $0.flights.isEmpty && $0.abandoned.isEmpty } }
}

extension Flights.State {
  /// True if a hold-off or a back-off forbids a background fetch of a key at a moment.
  func isHeld(_ key: Key, _ uptime: Duration) -> Bool { holdOffs.error(key, uptime) != nil || backOffs.error(key, uptime) != nil }

  func mayStore(_ id: UInt64) -> Bool { flights[id]?.isInvalidated == false }

  /// Returns the abandoned flight of a key that a new caller must join, or `nil` if a new flight may begin.
  mutating func rejoin(_ key: Key, _ uptime: Duration) -> UInt64? {
    guard let ids = abandoned[key] else { return nil }
    let counted = ids.filter { id in flights[id]?.abandonedAt.map { uptime - $0 < Flights.abandonedTime } ?? false }
    guard counted.count > Flights.abandonedLimit, let id = counted.last else { return nil }
    abandoned[key]?.removeAll { $0 == id }
    // `isOutdated` is set when a new caller joins, because only an invalidation before the joining makes the result outdated for that
    // caller. After an invalidation that comes later, the caller still gets the result, which is not stored.
    let isOutdated = !mayStore(id)
    flights[id]?.isOutdated = isOutdated
    return id
  }

  mutating func invalidateFlights(of key: Key) {
    if let id = current.removeValue(forKey: key) { flights[id]?.isInvalidated = true }
    for id in abandoned[key] ?? [] { flights[id]?.isInvalidated = true }
  }

  mutating func invalidateAllFlights() {
    for id in current.values { flights[id]?.isInvalidated = true }
    for id in abandoned.values.joined() { flights[id]?.isInvalidated = true }
    current = [:]
  }

  /// Removes a flight that has ended, and returns it.
  mutating func remove(_ id: UInt64, of key: Key) -> Flights.Flight? {
    if current[key] == id { current[key] = nil }
    abandoned[key]?.removeAll { $0 == id }
    if abandoned[key]?.isEmpty == true { abandoned[key] = nil }
    return flights.removeValue(forKey: id)
  }

  mutating func releaseHolds(of key: Key) {
    holdOffs.remove(key)
    backOffs.remove(key)
  }

  /// Sets a hold-off and a back-off of a key after a failed flight, and ends both after a successful one.
  mutating func noteHolds(of key: Key, after result: Result<Entry, any Error>, backOff: Duration, now: Duration) {
    switch result {
    case .success: releaseHolds(of: key)
    case .failure(let error):
      // The cancellation of a flight says nothing about the provider, so it sets no hold.
      if error is CancellationError { return }
      if let wait = ErrorTraits(error).retryAfter { holdOffs.hold(key, until: now + wait, error, now: now) }
      backOffs.hold(key, until: now + backOff, error, now: now)
    }
  }
}

/// Keys that must not be fetched before a moment, at most a thousand.
///
/// Beyond that limit, the holds that end first are dropped.
struct HoldOffs<Key: Hashable & Sendable>: Sendable {
  private typealias Moment = (until: Duration, error: any Error)
  static var limit: Int { 1_000 }
  private var moments: [Key: Moment] = [:]
  /// The latest end of the holds that were dropped for lack of room, with its error.
  ///
  /// Until the moment `all`, no key may be fetched in the background.
  private var all: Moment?
  private let holdsAllWhenFull: Bool

  /// - Parameter holdsAllWhenFull: True if a hold dropped for lack of room applies to all keys until it ends, false if it is lost.
  init(holdsAllWhenFull: Bool = false) { self.holdsAllWhenFull = holdsAllWhenFull }

  mutating func hold(_ key: Key, until: Duration, _ error: any Error, now: Duration) {
    moments[key] = (until, error)
    // Thousands of failing keys must not grow memory without a bound. Holds that have ended are dropped first.
    guard moments.count > Self.limit else { return }
    moments = moments.filter { $0.value.until > now }
    guard moments.count > Self.limit, let first = moments.min(by: { $0.value.until < $1.value.until }) else { return }
    moments[first.key] = nil
    if holdsAllWhenFull, all.map({ $0.until < first.value.until }) ?? true { all = first.value }
  }

  mutating func remove(_ key: Key) { moments[key] = nil }

  /// Returns the error that holds a key at a moment, or `nil` if none does.
  func error(_ key: Key, _ now: Duration) -> (any Error)? {
    // `moments` is nearly always empty, and then the key need not be hashed.
    if !moments.isEmpty, let moment = moments[key], moment.until > now { return moment.error }
    if let all, all.until > now { return all.error }
    return nil
  }
}
