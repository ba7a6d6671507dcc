// says: Member access without an explicit base is not supported in this predicate
import Foundation
import Larder

nonisolated enum Kind: String, Codable { case pier, beach }

nonisolated struct Landing: Codable, Identifiable, Sendable {
  let id: UUID
  var kind: Kind
}

func show(_ landings: LocalRepository<Landing>) async throws {
  print(try await landings.fetch(where: #Predicate { $0.kind == .pier }))
}
