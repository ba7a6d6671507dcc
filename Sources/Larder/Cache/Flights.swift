internal import Synchronization

/// The running fetches of a cache, single-flight: callers of one key share one fetch and its result.
///
/// A *flight* is one such fetch: the request with its retries, and the commit of the result. Joining, leaving, ending and invalidating a
/// flight are each one step under one lock, so no caller comes between two of these steps.
///
/// When its last caller leaves, a flight is cancelled, but it continues where the source ignores cancellation. Such a flight is
/// *abandoned*. Beside one abandoned flight of a key, another flight begins. Beside two, a new caller waits for the end of the newer one,
/// takes its result, and begins another flight only if there is no result.
///
/// Closures passed to these methods run with the lock held, and may take the lock of ``CacheState``. Code that holds the lock of
/// ``CacheState`` must not call these methods, or two threads could wait for each other.
final class Flights<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
  /// The work of a flight, which is named by its number: requests the value of a key and stores it.
  typealias Fetch = @Sendable (_ flight: UInt64, _ ticket: FetchTicket) async throws -> Entry

  /// The reason why a caller no longer waits for a flight.
  enum Outcome: Sendable {
    case ended(Result<Entry, any Error>)
    case timedOut
    case cancelled
    /// A newer version was stored since the caller's lookup, or an abandoned flight has ended without a result.
    ///
    /// The caller looks again.
    case changed
  }

  fileprivate typealias Waiter = OneShot<Outcome>

  /// A running fetch with its task and its waiters.
  fileprivate struct Flight: Sendable {
    let task: Task<Void, Never>
    /// True if its result may no longer be stored.
    var isInvalidated = false
    var waiters: [ObjectIdentifier: Waiter] = [:]
    /// True if it continues without a waiter: for a refresh in the background, or after a time-out.
    var isKept = false
    /// True if it has a waiter, or continues without one.
    var isWanted: Bool { !waiters.isEmpty || isKept }
    /// Time at which the last caller left and the flight was cancelled.
    ///
    /// Later callers may still wait for its end.
    var abandonedAt: Duration?
    /// True if the callers that wait for its end must fetch again, because the key was invalidated before they came.
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
    /// Keys whose provider has asked for a pause (`Retry-After`), with its end.
    var holdOffs = HoldOffs<Key>()
    /// Keys whose last flight has failed.
    ///
    /// They are not refreshed in the background before the end of a back-off.
    var backOffs = HoldOffs<Key>(holdsAllWhenFull: true)
  }

  /// Number of abandoned flights of a key that may run beside a new flight.
  fileprivate static var abandonedLimit: Int { 1 }
  /// Time after which an abandoned flight no longer counts, although it may still run.
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
  ///   - timeout: Longest wait. The flight continues after it.
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

  /// Begins a flight without a waiter, or lets the key's flight continue without a waiter.
  func begin(_ key: Key, unless hasChanged: () -> Bool, fetch: @escaping Fetch) {
    enter(key, nil, unless: hasChanged, fetch: fetch)
  }

  /// Finds or begins the flight of a key, adds the waiter to it, and returns its number, or `nil` if no flight may begin.
  @discardableResult private func enter(
    _ key: Key, _ waiter: Waiter?, unless hasChanged: () -> Bool, fetch: @escaping Fetch
  ) -> UInt64? {
    let uptime = clock.uptime
    var isBegun = false
    // The ticket of a call that begins no flight is given up, or the group of the call would wait for its key forever.
    defer { if !isBegun { FetchTicket.current?.endCall() } }
    return state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        // With the lock held: a flight that ended since the lookup has stored its result before it left `current`.
        if hasChanged() { return nil }
        // A flight of the key may have failed since the caller checked `mayRefresh`.
        if waiter == nil, state.isHeld(key, uptime) { return nil }
        if let old = state.rejoin(key, uptime) {
          id = old
        } else {
          // Abandoned flights of the key must not store an older value over that of the new flight.
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

  /// Stops waiting.
  ///
  /// The last waiter to leave cancels the flight.
  private func leave(_ id: UInt64, of key: Key, waiter: Waiter) {
    let uptime = clock.uptime
    let task: Task<Void, Never>? = state.withLock { state in
      // Without the waiter the flight has ended or the wait has timed out, and its outcome stands.
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return nil }
      guard let flight = state.flights[id], flight.waiters.isEmpty, !flight.isKept else { return nil }
      // At once, so that the next caller begins a new flight and does not wait for one that was cancelled.
      if state.current[key] == id { state.current[key] = nil }
      // A flight that was rejoined and left again keeps its first time, so that a deaf source blocks the key for a minute at most.
      state.flights[id]?.abandonedAt = flight.abandonedAt ?? uptime
      state.abandoned[key, default: []].append(id)
      return flight.task
    }
    // Outside the lock: cancelling runs the handlers of the source.
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
      // In one step with the removal: a refresh in between would begin before the back-off of a failure is noted.
      if state.mayStore(id) { state.noteHolds(of: key, after: result, backOff: backOff, now: uptime) }
      return state.remove(id, of: key)
    }
    guard let flight else { return }
    var outcome = Outcome.ended(result)
    // Its callers came after it was cancelled, so its failure is not theirs.
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

  /// Runs `body` with whether the result of a flight may be stored.
  ///
  /// No flight is invalidated until `body` returns.
  func checkingStorable<Result>(_ id: UInt64, _ body: (_ mayStore: Bool) -> Result) -> Result {
    state.withLock { body($0.mayStore(id)) }
  }

  /// Forbids the flights of a key to store their results.
  ///
  /// Their waiters still get them.
  func invalidateFlights(of key: Key) { state.withLock { $0.invalidateFlights(of: key) } }

  /// Forbids all flights to store their results.
  ///
  /// Their waiters still get them.
  func invalidateAllFlights() { state.withLock { $0.invalidateAllFlights() } }

  // MARK: Leaving keys alone

  /// True if a key may be refreshed in the background: it has a flight to join, or no failure holds it.
  func mayRefresh(_ key: Key) -> Bool {
    let uptime = clock.uptime
    return state.withLock { $0.current[key] != nil || !$0.isHeld(key, uptime) }
  }

  /// Returns the error of a provider that has asked for a pause, or `nil` while a flight of the key runs or after the pause.
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
  /// True if no flight runs, abandoned ones included.
  var isEmpty: Bool { state.withLock { $0.flights.isEmpty && $0.abandoned.isEmpty } }
}

extension Flights.State {
  /// True if a key may not be fetched in the background at a moment.
  func isHeld(_ key: Key, _ uptime: Duration) -> Bool { holdOffs.error(key, uptime) != nil || backOffs.error(key, uptime) != nil }

  func mayStore(_ id: UInt64) -> Bool { flights[id]?.isInvalidated == false }

  /// Returns the abandoned flight of a key that a new caller joins, or `nil` if a new flight may begin.
  mutating func rejoin(_ key: Key, _ uptime: Duration) -> UInt64? {
    guard let ids = abandoned[key] else { return nil }
    let counted = ids.filter { id in flights[id]?.abandonedAt.map { uptime - $0 < Flights.abandonedTime } ?? false }
    guard counted.count > Flights.abandonedLimit, let id = counted.last else { return nil }
    abandoned[key]?.removeAll { $0 == id }
    // Decided now: an invalidation that comes later concerns the new callers as well, who then get the result without its being stored.
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

  /// Notes a hold-off and a back-off after a failed flight, and ends both after a successful one.
  mutating func noteHolds(of key: Key, after result: Result<Entry, any Error>, backOff: Duration, now: Duration) {
    switch result {
    case .success: releaseHolds(of: key)
    case .failure(let error):
      // A cancelled flight says nothing about the provider.
      if error is CancellationError { return }
      if let wait = ErrorTraits(error).retryAfter { holdOffs.hold(key, until: now + wait, error, now: now) }
      backOffs.hold(key, until: now + backOff, error, now: now)
    }
  }
}

/// Keys that are not fetched before a moment, at most a thousand: those with the latest moments.
struct HoldOffs<Key: Hashable & Sendable>: Sendable {
  private typealias Moment = (until: Duration, error: any Error)
  static var limit: Int { 1_000 }
  private var moments: [Key: Moment] = [:]
  /// The latest of the moments that had no room.
  ///
  /// Until then every key is held.
  private var all: Moment?
  private let holdsAllWhenFull: Bool

  /// - Parameter holdsAllWhenFull: True if a hold without room holds every key until its moment. Otherwise that hold is dropped.
  init(holdsAllWhenFull: Bool = false) { self.holdsAllWhenFull = holdsAllWhenFull }

  mutating func hold(_ key: Key, until: Duration, _ error: any Error, now: Duration) {
    moments[key] = (until, error)
    // A thousand failing keys must not grow memory without a bound. Holds that have ended go first.
    guard moments.count > Self.limit else { return }
    moments = moments.filter { $0.value.until > now }
    guard moments.count > Self.limit, let first = moments.min(by: { $0.value.until < $1.value.until }) else { return }
    moments[first.key] = nil
    if holdsAllWhenFull, all.map({ $0.until < first.value.until }) ?? true { all = first.value }
  }

  mutating func remove(_ key: Key) { moments[key] = nil }

  /// Returns the error that holds a key at a moment, or `nil` if none does.
  func error(_ key: Key, _ now: Duration) -> (any Error)? {
    // Nearly always empty, and then the key need not be hashed.
    if !moments.isEmpty, let moment = moments[key], moment.until > now { return moment.error }
    if let all, all.until > now { return all.error }
    return nil
  }
}
