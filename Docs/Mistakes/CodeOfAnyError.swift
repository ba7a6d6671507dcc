// says: value of type 'any Error' has no member 'code'
import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
}

func rename(_ spots: LocalRepository<Spot>, _ id: UUID) async {
  do {
    try await spots.update(id) { $0.name = "Jogashima" }
  } catch {
    print(error.code)
  }
}
