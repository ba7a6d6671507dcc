public import Foundation
public import Larder
import Synchronization

/// The hosts, keys and seas that are not asked again before a time, in later runs too.
///
/// Larder's `CircuitBreaker` and its hold-offs end with the process. A command is a process of its own, so a `Retry-After` of an hour is
/// kept in the store.
public final class Holds: Sendable {
  /// The reason why something is not asked, and the time at which that ends.
  public struct Hold: Codable, Identifiable, Sendable {
    /// A host with its port, a key, or a forecast of the sea.
    public let id: String
    /// The reason.
    public let problem: WeatherProblem
    /// The time until which it is not asked again.
    public let until: Date
    /// The time at which the hold began; one from the future means that the clock was set back, and is ignored.
    public let notedAt: Date
  }

  /// A shorter wait than this is not worth remembering.
  private static let shortest = Duration.seconds(5)

  private let clock: any WallClock
  private let storage: LocalRepository<Hold>?
  private let holds = Mutex<[String: Hold]>([:])

  /// Knows nothing yet, and forgets everything at the end of the run.
  public init(clock: any WallClock = SystemClock()) {
    self.clock = clock
    storage = nil
  }

  /// Begins with the holds that earlier runs have stored.
  ///
  /// - Throws: What opening the collection throws.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    self.clock = clock
    self.storage = try await storage.store.repository(RepositorySchema("holds"))
  }

  /// Returns the hold of an id that is in force now.
  func hold(_ id: String) -> Hold? {
    let now = clock.now
    let stored: Hold?
    do throws(RepositoryError) { stored = try storage?.snapshot.find(by: id) } catch { stored = nil }
    return [holds.withLock { $0[id] }, stored].compactMap { $0 }.filter { $0.notedAt <= now && now < $0.until }
      .max { $0.until < $1.until }
  }

  /// Refuses a request that is held.
  ///
  /// - Throws: ``ProviderError/notAsked(_:wait:)``.
  func check(_ id: String) throws(ProviderError) {
    guard let hold = hold(id) else { return }
    let wait = hold.until.timeIntervalSince(clock.now)
    // A wait of some minutes is not worth the words.
    throw .notAsked(wait < 600 ? hold.problem : hold.problem.until(hold.until), wait: .seconds(wait))
  }

  /// Holds a host for as long as its answer asks with `Retry-After`.
  func note(_ error: ProviderError, of url: URL) async {
    guard let wait = error.retryAfter, wait >= Self.shortest else { return }
    await hold(url.hostAndPort, because: WeatherProblem(error), for: wait)
  }

  /// Holds an id for a while.
  ///
  /// If the store cannot be written, later runs ask again.
  func hold(_ id: String, because problem: WeatherProblem, for wait: Duration) async {
    let now = clock.now
    let hold = Hold(id: id, problem: problem, until: now + wait / .seconds(1), notedAt: now)
    // Several requests that were under way bring the same hold, and one of them is enough for the disk.
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

  /// Ends a hold.
  func release(_ id: String) async {
    guard holds.withLock({ $0.removeValue(forKey: id) }) != nil || hold(id) != nil, let storage else { return }
    do { try await storage.delete(id) } catch {}  // then it ends by itself
  }
}

extension URL {
  /// The host of a URL, with its port where it has one.
  var hostAndPort: String { (host() ?? "the server") + (port.map { ":\($0)" } ?? "") }
}

extension WeatherProblem {
  /// Returns the same problem, with the time before which no request is made.
  fileprivate func until(_ date: Date) -> WeatherProblem {
    WeatherProblem(
      "\(description); not asked again before \(date.formatted(.iso8601))", summary, isTransient: isTransient, isOfAnswer: isOfAnswer)
  }
}
