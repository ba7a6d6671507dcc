public import Foundation
internal import Synchronization

/// A switch that stops requests to a host that fails: closed, then open after failures in a row, then half-open with one probe.
///
/// While it is open, requests fail at once with ``CacheError/circuitOpen(until:)``. After the cool-down one request
/// goes through as a probe: if it succeeds the breaker closes, if it fails it opens for twice as long. A probe that has
/// not ended within the cool-down, or 30 seconds if those are longer, counts no more, and the next request is the probe. A request that is
/// cancelled, or ends with an error that does not count, counts as neither success nor failure: it neither opens nor closes the breaker,
/// and after such a probe the next request is the probe. Share one among everything that talks to one host.
public final class CircuitBreaker: Sendable {
  /// The requests that a breaker lets through.
  public enum Phase: Hashable, Sendable {
    /// Everything.
    case closed
    /// Nothing until then, by the wall clock as it was read now.
    case open(until: Date)
    /// One probe, which is under way or will be the next request.
    case halfOpen
  }

  private enum Mode {
    case closed(failures: Int)
    /// Until then, by the monotonic clock.
    case open(until: Duration)
    /// One request is under way; if it has not ended by then, another one goes through.
    case probing(until: Duration)
  }

  private struct State {
    var mode = Mode.closed(failures: 0)
    var coolDown: Duration
    /// The number that changes with each opening and closing, so that requests that began before do not count after.
    var generation: UInt64 = 0
  }

  /// A permission of a request.
  struct Admission: Sendable {
    let generation: UInt64
  }

  /// The number of failures in a row that open the breaker.
  public let failureLimit: Int
  private let coolDown: Duration
  private let maximumCoolDown: Duration
  private let clock: any WallClock
  private let state: Mutex<State>

  /// Makes a closed breaker: by default five failures open it for 30 seconds, doubling up to ten minutes.
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

  /// The phase at this moment.
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
  /// - Throws: ``CacheError/circuitOpen(until:)``; else what the request throws.
  ///   ``RemoteSourceError/countsAgainstBreaker`` tells whether an error counts. One that asks to wait longer than the
  ///   first cool-down opens the breaker for that long at once.
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

  /// The time that a probe may take at least.
  private static let shortestProbe = Duration.seconds(30)

  func admit() throws -> Admission {
    let uptime = clock.uptime
    let answer: (admission: Admission?, until: Duration) = state.withLock { state in
      switch state.mode {
      case .closed:
        return (Admission(generation: state.generation), uptime)
      case .open(let until) where until <= uptime, .probing(let until) where until <= uptime:
        state.generation += 1
        state.mode = .probing(until: uptime + max(state.coolDown, Self.shortestProbe))
        return (Admission(generation: state.generation), uptime)
      case .open(let until):
        return (nil, until)
      case .probing:
        return (nil, uptime)
      }
    }
    guard let admission = answer.admission else { throw CacheError.circuitOpen(until: date(of: answer.until, uptime)) }
    return admission
  }

  func note(_ admission: Admission, _ error: (any Error)?) {
    let uptime = clock.uptime
    let traits = error.map(ErrorTraits.init)
    let isCancelled = Task.isCancelled
    state.withLock { state in
      guard admission.generation == state.generation else { return }
      guard let traits else { return close(&state) }
      guard traits.countsAgainstBreaker, !isCancelled else {
        // Nothing was learnt: the next request is the probe.
        if case .probing = state.mode { state.mode = .open(until: uptime) }
        return
      }
      let wanted = traits.retryAfter ?? .zero
      switch state.mode {
      case .closed(let failures):
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
    if case .probing = state.mode { state.generation += 1 }
    state.mode = .closed(failures: 0)
    state.coolDown = coolDown
  }

  private func date(of moment: Duration, _ uptime: Duration) -> Date { clock.now.addingTimeInterval((moment - uptime).inSeconds) }
}
