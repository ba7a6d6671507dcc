// says: value of type 'Landing' has no member 'nme'
import Foundation
import Larder

nonisolated struct Landing: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
}

func show(_ landings: LocalRepository<Landing>) async throws {
  print(try await landings.fetch(Query<Landing>().where(#Predicate { $0.nme == "pier" })))
}
