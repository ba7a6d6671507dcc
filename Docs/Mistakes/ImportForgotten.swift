// says: extra argument 'sqliteFile' in call
import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
}

func open(url: URL) async throws {
  let spots = try await LocalRepository<Spot>(sqliteFile: url)
  print(spots)
}
