// says: main actor-isolated conformance of 'Spot' to 'Decodable' cannot satisfy conformance requirement for a 'Sendable' type parameter 'Item'
import Foundation
import Larder

struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
}

func open() async throws {
  let spots = try await LocalRepository<Spot>(filename: "spots.json")
  print(spots)
}
