import Foundation
import Larder

/// Failures that are believed for some minutes, so that a service that is out is not asked at every glance.
///
/// A store that cannot be written costs some requests more and no forecast: nothing here fails for it.
struct Troubles: Sendable {
  /// A failure, and until when it is believed.
  struct Trouble: Codable, Identifiable, Sendable {
    let id: PlaceDays
    let problem: WeatherProblem
    let until: Date
    let notedAt: Date
  }

  static let lifetime: TimeInterval = 180
  static let collection = RepositorySchema<Trouble>("weather-troubles")
  private let storage: LocalRepository<Trouble>

  init(_ storage: LocalRepository<Trouble>) { self.storage = storage }

  /// The failure that is believed now.
  func problem(_ key: PlaceDays, at now: Date) async -> WeatherProblem? {
    do {
      guard let trouble = try await storage.find(by: key), trouble.notedAt <= now, now < trouble.until else { return nil }
      return trouble.problem
    } catch { return nil }
  }

  /// Remembers a failure, and forgets all that are over.
  func note(_ problem: WeatherProblem, _ key: PlaceDays, at now: Date) async {
    do {
      for trouble in try await storage.loadAll() where trouble.until <= now { try await storage.delete(trouble.id) }
      try await storage.save(Trouble(id: key, problem: problem, until: now + Self.lifetime, notedAt: now))
    } catch {}  // see above
  }

  /// Forgets a failure.
  func forget(_ key: PlaceDays) async {
    do {
      guard try await storage.find(by: key) != nil else { return }
      try await storage.delete(key)
    } catch {}  // see above
  }
}
