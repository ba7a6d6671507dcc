import Foundation
import Larder

/// Failures that are believed for some minutes, so that a service that is out is not asked at every glance.
///
/// A store that cannot be written costs some requests more and no forecast: nothing here fails for it.
struct RecentFailures: Sendable {
  /// A failure, and until when it is believed.
  struct RecentFailure: Codable, Identifiable, Sendable {
    let id: ForecastPeriod
    let problem: WeatherProblem
    let until: Date
    let notedAt: Date
  }

  static let lifetime: TimeInterval = 180
  static let collection = RepositorySchema<RecentFailure>("weather-troubles")
  private let storage: LocalRepository<RecentFailure>

  init(_ storage: LocalRepository<RecentFailure>) { self.storage = storage }

  /// Returns the failure that is believed now.
  func problem(_ key: ForecastPeriod, at now: Date) async -> WeatherProblem? {
    do {
      guard let trouble = try await storage.find(by: key), trouble.notedAt <= now, now < trouble.until else { return nil }
      return trouble.problem
    } catch { return nil }
  }

  /// Remembers a failure, and forgets all that are over.
  func note(_ problem: WeatherProblem, _ key: ForecastPeriod, at now: Date) async {
    do {
      for trouble in try await storage.loadAll() where trouble.until <= now { try await storage.delete(trouble.id) }
      try await storage.save(RecentFailure(id: key, problem: problem, until: now + Self.lifetime, notedAt: now))
    } catch {}  // see above
  }

  /// Forgets a failure.
  func forget(_ key: ForecastPeriod) async {
    do {
      guard try await storage.find(by: key) != nil else { return }
      try await storage.delete(key)
    } catch {}  // see above
  }
}
