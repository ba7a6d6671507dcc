internal import Synchronization

/// The running fetches of a cache, of which concurrent callers of one key share one fetch and its result.
///
/// A *flight* is one running fetch that several callers may share: the request with its retries, and the commit of the result. Joining,
/// leaving, ending and invalidating a flight each take the same lock once, so each of these steps is atomic for the other callers.
///
/// When its last caller leaves, a flight is cancelled. If the source ignores the cancellation, the flight continues and is called
/// *abandoned*. If one abandoned flight of a key runs, a new caller begins a second flight of the key. If two abandoned flights of a key
/// run, a new caller waits for the newer flight and gets its result. If the abandoned flight that a caller waits for fails, or was
/// invalidated before the caller joined it, the caller looks the key up again and may begin another flight.
///
/// The closures `hasChanged` and `body` run with the lock of `Flights` held, and may take the lock of ``CacheState``. Code that holds the
/// lock of ``CacheState`` must not call the methods of `Flights`, or two threads could wait for each other.
final class Flights<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
  /// Requests the value of a key from the source, and stores the value unless the fetch with the number `flight` was invalidated.
  typealias Fetch = @Sendable (_ flight: UInt64, _ ticket: FetchTicket) async throws -> Entry

  /// The reason why a caller no longer waits for a running fetch.
  enum Outcome: Sendable {
    case ended(Result<Entry, any Error>)
    case timedOut
    case cancelled
    /// A newer version of the entry was stored since the caller's lookup, or a cancelled fetch has ended without a usable result.
    ///
    /// After the outcome `changed`, the caller looks the key up again.
    case changed
  }

  fileprivate typealias Waiter = OneShot<Outcome>

  /// A running fetch with its task and the callers that wait for it.
  fileprivate struct Flight: Sendable {
    let task: Task<Void, Never>
    /// True if the result of the fetch may no longer be stored.
    var isInvalidated = false
    var waiters: [ObjectIdentifier: Waiter] = [:]
    /// True if the fetch continues even if no caller waits: for a refresh in the background, or after the time-out of a caller.
    var isKept = false
    /// True if a caller waits for the fetch, or if the fetch continues without a waiting caller.
    var isWanted: Bool { !waiters.isEmpty || isKept }
    /// Time at which the last caller left and the fetch was cancelled, or `nil` if the fetch was not cancelled.
    ///
    /// A later caller may still join a cancelled fetch and wait for its end.
    var abandonedAt: Duration?
    /// True if the fetch was already invalidated when its present callers joined it.
    ///
    /// If `isOutdated` is true, the callers of the fetch must look the key up again.
    var isOutdated = false
  }

  fileprivate struct State: Sendable {
    /// The running fetches, by the number of the fetch.
    var flights: [UInt64: Flight] = [:]
    /// Number of the running fetch that new callers of a key join.
    var current: [Key: UInt64] = [:]
    var last: UInt64 = 0
    /// Numbers of the abandoned (cancelled and still running) fetches of each key, with the newest last.
    var abandoned: [Key: [UInt64]] = [:]
    /// Keys for which the provider has asked for a pause (`Retry-After`), with the end of the pause.
    var holdOffs = HoldOffs<Key>()
    /// Keys whose last fetch has failed, with the end of their back-off (the time before the next refresh in the background).
    ///
    /// A key is not refreshed in the background before its back-off ends.
    var backOffs = HoldOffs<Key>(holdsAllWhenFull: true)
  }

  /// Number of abandoned (cancelled and still running) fetches of a key that may run beside a new fetch.
  fileprivate static var abandonedLimit: Int { 1 }
  /// Time after which an abandoned fetch no longer counts against ``abandonedLimit``, although the fetch may still run.
  fileprivate static var abandonedTime: Duration { .seconds(60) }

  private let clock: any WallClock
  /// Least time between a failed fetch and the next refresh of its key in the background.
  private let backOff: Duration
  private let state = Mutex(State())

  init(clock: any WallClock, backOff: Duration) {
    self.clock = clock
    self.backOff = backOff
  }

  // MARK: Joining

  /// Joins the running fetch of a key, or begins one if there is none, and waits until the fetch ends.
  ///
  /// - Parameters:
  ///   - timeout: Longest time that the caller waits. A fetch continues after the time-out of a caller.
  ///   - hasChanged: Returns true if the key's entry has another version than the caller's lookup has found. If `hasChanged` returns true,
  ///     no fetch begins and the outcome is `.changed`.
  ///   - fetch: The work of the fetch, which runs if a new fetch begins.
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

  /// Begins a fetch that no caller waits for, or makes the key's running fetch continue even if all of its callers leave.
  func begin(_ key: Key, unless hasChanged: () -> Bool, fetch: @escaping Fetch) {
    enter(key, nil, unless: hasChanged, fetch: fetch)
  }

  /// Adds a waiter to the running or a new fetch of a key, and returns the number of the fetch, or `nil` if no fetch may begin.
  @discardableResult private func enter(
    _ key: Key, _ waiter: Waiter?, unless hasChanged: () -> Bool, fetch: @escaping Fetch
  ) -> UInt64? {
    let uptime = clock.uptime
    var isBegun = false
    // A call that begins no fetch ends its ``FetchTicket``, which counts one key of a ``FetchGroup``. If the ticket were not ended, the
    // request of the ``FetchGroup`` would wait for the key forever.
    defer { if !isBegun { FetchTicket.current?.endCall() } }
    return state.withLock { state in
      let id: UInt64
      if let current = state.current[key] {
        id = current
      } else {
        // `hasChanged` runs under the lock of `Flights`. A fetch stores its result before it is removed from `current`, so `hasChanged`
        // returns true if a fetch of the key has ended since the lookup.
        if hasChanged() { return nil }
        // A fetch of the key may have failed after the caller checked `mayRefresh`, so the back-off is checked again under the lock.
        if waiter == nil, state.isHeld(key, uptime) { return nil }
        if let old = state.rejoin(key, uptime) {
          id = old
        } else {
          // An abandoned (cancelled and still running) fetch of the key must not store an older value over the value of the new fetch.
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

  /// Ends the wait of a caller for a fetch, because the caller's task was cancelled.
  ///
  /// If no other caller waits for the fetch and the fetch need not continue in the background, the fetch is cancelled too.
  private func leave(_ id: UInt64, of key: Key, waiter: Waiter) {
    let uptime = clock.uptime
    let task: Task<Void, Never>? = state.withLock { state in
      // If the fetch no longer has the caller as a waiter, the fetch has ended or the wait has timed out, so the caller already has an
      // outcome.
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return nil }
      guard let flight = state.flights[id], flight.waiters.isEmpty, !flight.isKept else { return nil }
      // A cancelled fetch is removed from `current` at once, so that the next caller begins a new fetch and does not wait for the cancelled
      // fetch.
      if state.current[key] == id { state.current[key] = nil }
      // If callers join and leave a cancelled fetch again, its `abandonedAt` stays the time of the first cancellation. If `abandonedAt`
      // were set again, a source that ignores cancellation could block a key for more than a minute.
      state.flights[id]?.abandonedAt = flight.abandonedAt ?? uptime
      state.abandoned[key, default: []].append(id)
      return flight.task
    }
    // The task of the fetch is cancelled outside the lock, because cancelling a task runs the cancellation handlers of the source.
    task?.cancel()
    waiter.resolve(.cancelled)
  }

  /// Ends the wait of one caller after its time-out, and lets the fetch continue, even if no other caller waits.
  private func timeOut(_ waiter: Waiter, of id: UInt64) {
    state.withLock { state in
      guard state.flights[id]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return }
      state.flights[id]?.isKept = true
    }
    waiter.resolve(.timedOut)
  }

  // MARK: Flying

  /// Runs a fetch from beginning to end, outside every actor, and resumes the callers that wait for the fetch.
  @concurrent private func run(_ id: UInt64, of key: Key, ticket: FetchTicket, fetch: Fetch) async {
    let result: Result<Entry, any Error>
    do { result = .success(try await fetch(id, ticket)) } catch { result = .failure(error) }
    let uptime = clock.uptime
    let flight: Flight? = state.withLock { state in
      // The back-off is set and the failed fetch is removed under one lock. With two separate steps, a refresh in the background could
      // begin between them in spite of the failure.
      if state.mayStore(id) { state.noteHolds(of: key, after: result, backOff: backOff, now: uptime) }
      return state.remove(id, of: key)
    }
    guard let flight else { return }
    var outcome = Outcome.ended(result)
    // If a fetch was cancelled, its present callers joined it after the cancellation. The failure of a cancelled fetch may come from the
    // cancellation, so its callers look the key up again.
    if flight.abandonedAt != nil {
      if case .failure = result { outcome = .changed }
      if flight.isOutdated { outcome = .changed }
    }
    for waiter in flight.waiters.values { waiter.resolve(outcome) }
  }

  /// True if a caller waits for a fetch, or if the fetch continues in the background.
  func isWanted(_ id: UInt64) -> Bool { state.withLock { $0.flights[id]?.isWanted ?? false } }

  // MARK: Invalidating

  /// True if the result of a fetch may still be stored, because the fetch was not invalidated.
  func mayStore(_ id: UInt64) -> Bool { state.withLock { $0.mayStore(id) } }

  /// Calls `body` with true if the result of a fetch may be stored, with the lock of `Flights` held.
  ///
  /// No fetch is invalidated until `body` returns.
  func checkingStorable<Result>(_ id: UInt64, _ body: (_ mayStore: Bool) -> Result) -> Result {
    state.withLock { body($0.mayStore(id)) }
  }

  /// Invalidates the running fetches of a key, so that they do not store their results.
  ///
  /// The callers that wait for an invalidated fetch still get its result.
  func invalidateFlights(of key: Key) { state.withLock { $0.invalidateFlights(of: key) } }

  /// Invalidates all running fetches, so that they do not store their results.
  ///
  /// The callers that wait for an invalidated fetch still get its result.
  func invalidateAllFlights() { state.withLock { $0.invalidateAllFlights() } }

  // MARK: Leaving keys alone

  /// True if a key may be refreshed in the background: a fetch of the key runs, or no hold-off and no back-off applies to the key.
  func mayRefresh(_ key: Key) -> Bool {
    let uptime = clock.uptime
    return state.withLock { $0.current[key] != nil || !$0.isHeld(key, uptime) }
  }

  /// Returns the error with which a provider asked for a pause, or `nil` after the pause and while a fetch of the key runs.
  func holdOffError(of key: Key) -> (any Error)? {
    let uptime = clock.uptime
    return state.withLock { $0.current[key] == nil ? $0.holdOffs.error(key, uptime) : nil }
  }

  /// Ends the hold-off (a pause that the provider asked for) and the back-off of a key.
  func releaseHolds(of key: Key) { state.withLock { $0.releaseHolds(of: key) } }

  /// Ends the hold-offs (pauses that the provider asked for) and back-offs of all keys.
  func releaseAllHolds() { state.withLock { ($0.holdOffs, $0.backOffs) = (.init(), .init(holdsAllWhenFull: true)) } }

  // MARK: For tests

  /// Number of callers that wait for each running fetch, in any order.
  var waiterCounts: [Int] { state.withLock { $0.flights.values.map(\.waiters.count) } }
  /// Number of running fetches that no caller waits for and that continue in the background.
  var keptCount: Int { state.withLock { $0.flights.values.count { $0.isKept && $0.waiters.isEmpty } } }
  /// True if no fetch runs, not even a cancelled one.
  var isEmpty: Bool { state.withLock { $0.flights.isEmpty && $0.abandoned.isEmpty } }
}

extension Flights.State {
  /// True if a hold-off or a back-off forbids a background fetch of a key at a moment.
  func isHeld(_ key: Key, _ uptime: Duration) -> Bool { holdOffs.error(key, uptime) != nil || backOffs.error(key, uptime) != nil }

  func mayStore(_ id: UInt64) -> Bool { flights[id]?.isInvalidated == false }

  /// Returns the number of the abandoned fetch of a key that a new caller must join, or `nil` if a new fetch may begin.
  mutating func rejoin(_ key: Key, _ uptime: Duration) -> UInt64? {
    guard let ids = abandoned[key] else { return nil }
    let counted = ids.filter { id in flights[id]?.abandonedAt.map { uptime - $0 < Flights.abandonedTime } ?? false }
    guard counted.count > Flights.abandonedLimit, let id = counted.last else { return nil }
    abandoned[key]?.removeAll { $0 == id }
    // `isOutdated` is set when a new caller joins, because only an invalidation before the caller joins makes the result outdated for this
    // caller. After a later invalidation, the caller still gets the result of the fetch, which is not stored.
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

  /// Removes a fetch that has ended, and returns its description with the callers to resume.
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

  /// Sets a back-off of a key after a failed fetch, and a hold-off if the provider asked for a pause.
  ///
  /// A successful fetch of the key ends its hold-off and its back-off.
  mutating func noteHolds(of key: Key, after result: Result<Entry, any Error>, backOff: Duration, now: Duration) {
    switch result {
    case .success: releaseHolds(of: key)
    case .failure(let error):
      // The cancellation of a fetch is no failure of the provider, so it sets no hold-off and no back-off.
      if error is CancellationError { return }
      if let wait = ErrorTraits(error).retryAfter { holdOffs.hold(key, until: now + wait, error, now: now) }
      backOffs.hold(key, until: now + backOff, error, now: now)
    }
  }
}

/// Keys that must not be fetched before a given moment, at most a thousand keys.
///
/// If there are more than a thousand keys, the holds that end first are dropped.
struct HoldOffs<Key: Hashable & Sendable>: Sendable {
  private typealias Moment = (until: Duration, error: any Error)
  static var limit: Int { 1_000 }
  private var moments: [Key: Moment] = [:]
  /// The latest end among the holds that were dropped because there were too many, with the error of the hold that ends then.
  ///
  /// Until the moment in `all`, no key may be fetched in the background.
  private var all: Moment?
  private let holdsAllWhenFull: Bool

  /// - Parameter holdsAllWhenFull: True if a hold that was dropped for lack of room applies to all keys, false if it is lost.
  init(holdsAllWhenFull: Bool = false) { self.holdsAllWhenFull = holdsAllWhenFull }

  mutating func hold(_ key: Key, until: Duration, _ error: any Error, now: Duration) {
    moments[key] = (until, error)
    // Without a limit, thousands of failing keys would grow memory without a bound. Holds that have ended are dropped first.
    guard moments.count > Self.limit else { return }
    moments = moments.filter { $0.value.until > now }
    guard moments.count > Self.limit, let first = moments.min(by: { $0.value.until < $1.value.until }) else { return }
    moments[first.key] = nil
    if holdsAllWhenFull, all.map({ $0.until < first.value.until }) ?? true { all = first.value }
  }

  mutating func remove(_ key: Key) { moments[key] = nil }

  /// Returns the error because of which a key must not be fetched at the moment `now`, or `nil` if the key may be fetched.
  func error(_ key: Key, _ now: Duration) -> (any Error)? {
    // `moments` is nearly always empty, and the check of `isEmpty` saves the hash of the key.
    if !moments.isEmpty, let moment = moments[key], moment.until > now { return moment.error }
    if let all, all.until > now { return all.error }
    return nil
  }
}
