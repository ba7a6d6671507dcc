// says: an index needs properties whose types are IndexableValue; add the conformance: 'enum Kind: String, Codable, IndexableValue'
import Foundation
import Larder

nonisolated enum Kind: String, Codable { case pier, beach }

nonisolated struct Landing: Codable, Identifiable, Sendable {
  let id: UUID
  var kind: Kind
}

func open(url: URL) async throws {
  let landings = try await LocalRepository<Landing>(jsonFile: url, schema: RepositorySchema(indexes: [.ordered(\.kind)]))
  print(landings)
}
