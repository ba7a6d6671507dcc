public import Foundation
public import Larder
import Synchronization

/// The known state of each host, shared by all requests: a host that failed is not asked again for a while.
///
/// A host that cannot be reached five times in a row is left alone by all its services, a service that fails or refuses five times in a
/// row by itself, both for 30 seconds, doubling up to ten minutes; then one request tries again. A host that asks for 5 seconds or more
/// is left alone for as long as it asks, for a day at most, also by later runs, because that is kept in the store. Only requests that were
/// really made count.
public final class HostStates: Sendable {
  /// A host, or something that it has refused, that is not asked again before a time.
  public struct Hold: Codable, Identifiable, Sendable {
    /// The host with its port, or what else is not asked for.
    public let id: String
    /// The reason.
    public let problem: WeatherProblem
    /// The time until which it is not asked again.
    public let until: Date
    /// The time at which the hold began; one from the future means that the clock was set back, and is ignored.
    public let notedAt: Date
  }

  fileprivate struct State {
    var failures = 0
    var last: ProviderError?
    var coolDown = HostStates.coolDown
    /// The time until which it is not asked, by the monotonic clock.
    var closedUntil: Duration?
    var isProbing = false
  }

  /// The number of consecutive failures after which a host is left alone.
  static let failureLimit = 5
  fileprivate static let coolDown = Duration.seconds(30)
  /// A shorter wait than this is not worth remembering.
  private static let shortestHold = Duration.seconds(5)

  private let clock: any WallClock
  private let storage: LocalRepository<Hold>?
  private let holds = Mutex<[String: Hold]>([:])
  private let states = Mutex<[String: State]>([:])

  /// Knows nothing yet, and forgets everything at the end of the run.
  public init(clock: any WallClock = SystemClock()) {
    self.clock = clock
    storage = nil
  }

  /// Begins with what earlier runs have stored.
  ///
  /// - Throws: What opening the collection throws.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    self.clock = clock
    self.storage = try await storage.store.repository(RepositorySchema("host-holds"))
  }

  /// Runs a request if its host may be asked, and learns from its end.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)`` when it may not; else what the request throws.
  func run<Answer>(_ url: URL, _ request: () async throws(ProviderError) -> Answer) async throws(ProviderError) -> Answer {
    try admit(url)
    do throws(ProviderError) {
      let answer = try await request()
      note(nil, of: url)
      return answer
    } catch {
      note(error, of: url)
      if let wait = error.retryAfter, wait >= Self.shortestHold { await hold(Self.host(url), because: error, for: wait) }
      throw error
    }
  }

  /// Leaves something alone for a while, in later runs too; a store that cannot be written costs some requests, and nothing else.
  func hold(_ id: String, because error: ProviderError, for wait: Duration) async {
    let now = clock.now
    let hold = Hold(id: id, problem: WeatherProblem(error), until: now + wait / .seconds(1), notedAt: now)
    // Several that were under way say the same; one of them is enough for the disk.
    let isNew = holds.withLock { holds in
      defer { holds[id] = hold }
      return holds[id].map { $0.until < hold.until } ?? true
    }
    guard isNew, let storage else { return }
    do {
      for old in try await storage.loadAll() where old.until <= now { try await storage.delete(old.id) }
      try await storage.save(hold)
    } catch {}  // see above
  }

  /// Refuses what is being left alone.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)``.
  func checkHold(_ id: String) throws(ProviderError) {
    let now = clock.now
    let stored: Hold?
    do throws(RepositoryError) { stored = try storage?.snapshot.find(by: id) } catch { stored = nil }
    let all = [holds.withLock { $0[id] }, stored].compactMap { $0 }.filter { $0.notedAt <= now && now < $0.until }
    guard let hold = all.max(by: { $0.until < $1.until }) else { return }
    let wait = hold.until.timeIntervalSince(now)
    // What is over in some minutes is not worth the words.
    throw .notAsked(wait < 600 ? hold.problem : hold.problem.until(hold.until), wait: .seconds(wait))
  }

  /// Returns the host of a URL, with its port where it has one.
  static func host(_ url: URL) -> String { (url.host() ?? "the server") + (url.port.map { ":\($0)" } ?? "") }

  private static func service(_ url: URL) -> String {
    // WeatherKit's paths go on with the place.
    host(url) + " " + url.pathComponents.prefix(4).joined(separator: "/")
  }

  private func admit(_ url: URL) throws(ProviderError) {
    try checkHold(Self.host(url))
    let uptime = clock.uptime
    let refusal: (ProviderError?, Duration)? = states.withLock { states in
      let keys = [Self.host(url), Self.service(url)]
      for key in keys {
        guard let state = states[key], let until = state.closedUntil else { continue }
        if uptime < until { return (state.last, until - uptime) }
        if state.isProbing { return (state.last, Self.coolDown) }
      }
      for key in keys where states[key]?.closedUntil != nil { states[key]?.isProbing = true }
      return nil
    }
    guard let (error, wait) = refusal else { return }
    throw .notAsked(WeatherProblem(error ?? .interrupted), wait: wait)
  }

  private func note(_ error: ProviderError?, of url: URL) {
    let uptime = clock.uptime
    states.withLock { states in
      let (host, service) = (Self.host(url), Self.service(url))
      switch error?.scope ?? .works {
      case .nothing:
        for key in [host, service] { states[key]?.isProbing = false }
      case .works:
        states[host] = nil
        states[service] = nil
      case .service(let answers):
        if answers { states[host] = nil } else { states[host]?.isProbing = false }
        states[service, default: State()].fail(error, at: uptime)
      case .host:
        states[service]?.isProbing = false
        states[host, default: State()].fail(error, at: uptime)
      }
    }
  }
}

extension HostStates.State {
  mutating func fail(_ error: ProviderError?, at uptime: Duration) {
    let wasProbe = isProbing
    isProbing = false
    // Refusals of different things are about these things, and not about the host; but a probe that is refused has failed.
    if !wasProbe, case .rejected = error, error != last { failures = 0 }
    failures += 1
    last = error
    guard wasProbe || failures >= HostStates.failureLimit else { return }
    // Those that were under way when it closed do not make it longer.
    if let closedUntil, uptime < closedUntil, !wasProbe { return }
    if wasProbe { coolDown = min(coolDown * 2, .seconds(600)) }
    closedUntil = uptime + coolDown
  }
}

extension ProviderError {
  /// The scope of a failure.
  fileprivate enum Scope {
    /// Nothing was learnt.
    case nothing
    /// The host works.
    case works
    /// One service of the host; whether the host has answered.
    case service(answers: Bool)
    case host
  }

  /// Whether nothing was learnt about the host.
  var teachesNothing: Bool { if case .nothing = scope { true } else { false } }

  fileprivate var scope: Scope {
    switch self {
    case .network(.cancelled), .notAsked, .misconfigured: .nothing
    case .network(.unreachable): .host
    case .network(.timedOut), .network(.tooLarge): .service(answers: false)
    case .noCoverage, .unsupported, .unexpectedUnit: .works
    case .rejected, .unauthorized, .rateLimited, .serviceFailed, .notJSON, .interrupted, .malformed: .service(answers: true)
    }
  }
}

extension WeatherProblem {
  /// Returns the same problem, with the time before which no request is made.
  func until(_ date: Date) -> WeatherProblem {
    WeatherProblem(
      "\(description); not asked again before \(date.formatted(.iso8601))", summary, isTransient: isTransient, isOfAnswer: isOfAnswer)
  }
}
