// says: immutable property will not be decoded because it is declared with an initial value which cannot be overwritten
import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id = UUID()
  var name: String
}

func open(url: URL) async throws {
  let spots = try await LocalRepository<Spot>(jsonFile: url)
  print(spots)
}
