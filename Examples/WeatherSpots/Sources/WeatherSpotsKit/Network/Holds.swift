public import Foundation
public import Larder
import Synchronization

/// A persistent list of hosts, API keys and sea forecasts that must not be requested before a given time.
///
/// Larder's `CircuitBreaker` and its hold-offs end with the process. Each command is a process of its own, so a `Retry-After` of an hour
/// is kept in the store.
public final class Holds: Sendable {
  /// A reason for making no request, and the time at which the hold ends.
  public struct Hold: Codable, Identifiable, Sendable {
    /// A host with its port, an API key, or a forecast of the sea.
    public let id: String
    /// The reason.
    public let problem: WeatherProblem
    /// Time before which no request is made.
    public let until: Date
    /// Time at which the hold began.
    ///
    /// A hold from the future is ignored: the clock was set back after it was stored.
    public let notedAt: Date
  }

  /// The shortest `Retry-After` that is kept.
  private static let shortest = Duration.seconds(5)

  private let clock: any WallClock
  private let storage: LocalRepository<Hold>?
  private let holds = Mutex<[String: Hold]>([:])

  /// Makes an empty list that is kept in memory only.
  public init(clock: any WallClock = SystemClock()) {
    self.clock = clock
    storage = nil
  }

  /// Makes a list that begins with the holds stored by earlier runs.
  ///
  /// - Throws: The errors of opening the collection.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    self.clock = clock
    self.storage = try await storage.store.repository(RepositorySchema("holds"))
  }

  /// Returns the hold on a host, API key or sea forecast that is in force now, or `nil`.
  func hold(_ id: String) -> Hold? {
    let now = clock.now
    let stored: Hold?
    // An unreadable store must not block a forecast: at worst a host is requested too early.
    do throws(RepositoryError) { stored = try storage?.snapshot.find(by: id) } catch { stored = nil }
    // The stored hold counts beside the one in memory: an earlier run may have written a longer one.
    return [holds.withLock { $0[id] }, stored].compactMap { $0 }.filter { $0.notedAt <= now && now < $0.until }
      .max { $0.until < $1.until }
  }

  /// Throws if a host, API key or sea forecast is on hold.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)``.
  func check(_ id: String) throws(ProviderError) {
    guard let hold = hold(id) else { return }
    let wait = hold.until.timeIntervalSince(clock.now)
    // Under ten minutes the time is left out: the message would be longer and of little use.
    throw .notAsked(wait < 600 ? hold.problem : hold.problem.until(hold.until), wait: .seconds(wait))
  }

  /// Holds a host for the time that its answer asks for in `Retry-After`.
  func note(_ error: ProviderError, of url: URL) async {
    // A wait of seconds is over before the next command starts, and storing it would cost a commit.
    guard let wait = error.retryAfter, wait >= Self.shortest else { return }
    await hold(url.hostAndPort, because: WeatherProblem(error), for: wait)
  }

  /// Holds a host, API key or sea forecast for `wait`.
  ///
  /// If the store cannot be written, later runs ask again.
  func hold(_ id: String, because problem: WeatherProblem, for wait: Duration) async {
    let now = clock.now
    let hold = Hold(id: id, problem: problem, until: now + wait / .seconds(1), notedAt: now)
    // Parallel requests to one host bring the same hold. Only the first one is written to the disk, and the longest one counts.
    let isNew = holds.withLock { holds in
      if let known = holds[id], known.notedAt <= now, known.until >= hold.until { return false }
      holds[id] = hold
      return true
    }
    guard isNew, let storage else { return }
    do {
      // Ended holds are deleted here, so that the collection does not grow with every host that was ever held.
      for old in try await storage.loadAll() where old.until <= now { try await storage.delete(old.id) }
      try await storage.save(hold)
      // The hold in memory still protects the host during this run.
    } catch {}  // see above
  }

  /// Ends a hold, in memory and in the store.
  func release(_ id: String) async {
    // No commit when there was no hold, which is the usual case.
    guard holds.withLock({ $0.removeValue(forKey: id) }) != nil || hold(id) != nil, let storage else { return }
    do { try await storage.delete(id) } catch {}  // then it ends by itself
  }
}

extension URL {
  /// Host of the URL, followed by the port if the URL has one.
  var hostAndPort: String { (host() ?? "the server") + (port.map { ":\($0)" } ?? "") }
}

extension WeatherProblem {
  /// Returns a copy of the problem whose description names the time before which no request is made.
  fileprivate func until(_ date: Date) -> WeatherProblem {
    WeatherProblem(
      "\(description); not asked again before \(date.formatted(.iso8601))", summary, isTransient: isTransient, isOfAnswer: isOfAnswer)
  }
}
