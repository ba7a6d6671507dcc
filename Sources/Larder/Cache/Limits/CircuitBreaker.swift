public import Foundation
internal import Synchronization

/// A circuit breaker, which stops requests to a host that fails.
///
/// A *closed* breaker lets requests through until ``failureLimit`` of them fail in a row. An *open* breaker fails each request at once with
/// ``CacheError/circuitOpen(until:)``. After the cool-down an open breaker becomes *half-open*, and lets one request through as a probe. A
/// probe that succeeds closes the breaker, and a probe that fails opens the breaker for twice the previous cool-down. A probe that has not
/// ended after the cool-down, or after 30 seconds if that is longer, no longer counts, and the next request becomes the probe.
///
/// A request that is cancelled before it succeeds, or that ends with an error that does not count, neither opens nor closes the breaker. If
/// a probe is cancelled or its error does not count, the next request becomes the probe. Share one breaker among all requests to a host.
public final class CircuitBreaker: Sendable {
  /// States of a breaker, by the requests that it lets through.
  public enum Phase: Hashable, Sendable {
    /// The breaker lets all requests through.
    case closed
    /// The breaker lets no request through until the date `until`, which is computed from the wall clock when ``CircuitBreaker/phase`` is
    /// read.
    case open(until: Date)
    /// The breaker lets one request through as a probe. The probe is running, or the next request will be the probe.
    case halfOpen
  }

  private enum Mode {
    case closed(failures: Int)
    /// The breaker lets no request through until the moment `until` of the monotonic clock.
    case open(until: Duration)
    /// A probe, which is the one request that a half-open breaker lets through, is running.
    ///
    /// If the probe has not ended by the moment `until` of the monotonic clock, the next request becomes the probe.
    case probing(until: Duration)
  }

  private struct State {
    var mode = Mode.closed(failures: 0)
    var coolDown: Duration
    /// A number that increases with each opening of the breaker, with each probe, and with the success of a probe.
    ///
    /// The breaker counts the result of a request only if `generation` has not changed since the request was admitted.
    var generation: UInt64 = 0
  }

  /// Permission to send one request, with the value of the breaker's `generation` when the permission was given.
  struct Admission: Sendable {
    let generation: UInt64
  }

  /// Number of failures in a row that open the breaker.
  public let failureLimit: Int
  private let coolDown: Duration
  private let maximumCoolDown: Duration
  private let clock: any WallClock
  private let state: Mutex<State>

  /// Makes a closed breaker.
  ///
  /// By default five failures in a row open the breaker for 30 seconds, and each failed probe doubles that time, up to ten minutes.
  public init(
    failureLimit: Int = 5, coolDown: Duration = .seconds(30), maximumCoolDown: Duration = .seconds(600),
    clock: any WallClock = SystemClock()
  ) {
    self.failureLimit = max(failureLimit, 1)
    self.coolDown = coolDown.bounded
    self.maximumCoolDown = max(maximumCoolDown.bounded, self.coolDown)
    self.clock = clock
    state = Mutex(State(coolDown: self.coolDown))
  }

  /// Phase of the breaker at this moment.
  public var phase: Phase {
    let uptime = clock.uptime
    switch state.withLock({ $0.mode }) {
    case .closed: return .closed
    case .probing: return .halfOpen
    case .open(let until): return until <= uptime ? .halfOpen : .open(until: date(of: until, uptime))
    }
  }

  /// Runs a request if the breaker lets it through, and counts its success or failure.
  ///
  /// ``RemoteSourceError/countsAgainstBreaker`` says whether an error counts. An error that counts and asks for a wait longer than the
  /// first cool-down opens the breaker for that wait at once.
  /// - Throws: ``CacheError/circuitOpen(until:)``, or else the error of the request.
  public func run<Result>(_ request: () async throws -> Result) async throws -> Result {
    try await run(admit(), request)
  }

  func run<Result>(_ admission: Admission, _ request: () async throws -> Result) async throws -> Result {
    do {
      let result = try await request()
      note(admission, nil)
      return result
    } catch {
      note(admission, error)
      throw error
    }
  }

  /// Time that a probe request may take even if the cool-down is shorter.
  private static let shortestProbe = Duration.seconds(30)

  /// Permits a request to the host, or throws ``CacheError/circuitOpen(until:)``.
  func admit() throws -> Admission {
    let uptime = clock.uptime
    let answer: (admission: Admission?, until: Duration) = state.withLock { state in
      switch state.mode {
      case .closed:
        return (Admission(generation: state.generation), uptime)
      case .open(let until) where until <= uptime, .probing(let until) where until <= uptime:
        // Each probe begins a new generation, so that a late result of the previous probe neither closes nor opens the breaker.
        state.generation += 1
        state.mode = .probing(until: uptime + max(state.coolDown, Self.shortestProbe))
        return (Admission(generation: state.generation), uptime)
      case .open(let until):
        return (nil, until)
      case .probing:
        // The end of the running probe is not known, so the error names the present as the date.
        return (nil, uptime)
      }
    }
    guard let admission = answer.admission else { throw CacheError.circuitOpen(until: date(of: answer.until, uptime)) }
    return admission
  }

  /// Counts the success or failure of a permitted request.
  func note(_ admission: Admission, _ error: (any Error)?) {
    let uptime = clock.uptime
    let traits = error.map(ErrorTraits.init)
    let isCancelled = Task.isCancelled
    state.withLock { state in
      // If the generations of the request and of the breaker differ, the breaker has opened, closed or begun a probe since the request
      // began. The result of a request from an earlier generation says nothing about the present state of the host.
      guard admission.generation == state.generation else { return }
      guard let traits else { return close(&state) }
      guard traits.countsAgainstBreaker, !isCancelled else {
        // A probe that was cancelled, or whose error does not count, says nothing about the host, so the next request is the probe.
        if case .probing = state.mode { state.mode = .open(until: uptime) }
        return
      }
      let wanted = traits.retryAfter ?? .zero
      switch state.mode {
      case .closed(let failures):
        // A long `Retry-After` opens the breaker at the first failure, because the provider has said that earlier requests will fail.
        if wanted > coolDown {
          open(&state, until: uptime + wanted)
        } else if failures + 1 >= failureLimit {
          open(&state, until: uptime + max(state.coolDown, wanted))
        } else {
          state.mode = .closed(failures: failures + 1)
        }
      case .probing:
        state.coolDown = min(state.coolDown * 2, maximumCoolDown)
        open(&state, until: uptime + max(state.coolDown, wanted))
      case .open: break
      }
    }
  }

  private func open(_ state: inout State, until: Duration) {
    state.generation += 1
    state.mode = .open(until: until)
  }

  private func close(_ state: inout State) {
    // A success of a request keeps the generation of a closed breaker. If every success began a new generation, later failures of requests
    // that were already running would not count.
    if case .probing = state.mode { state.generation += 1 }
    state.mode = .closed(failures: 0)
    state.coolDown = coolDown
  }

  private func date(of moment: Duration, _ uptime: Duration) -> Date { clock.now.addingTimeInterval((moment - uptime).inSeconds) }
}
