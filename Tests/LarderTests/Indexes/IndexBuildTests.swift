import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// An index that is made while others write: what they commit meanwhile is in it, once.
@Suite(.timeLimit(.minutes(15))) struct IndexBuildTests {
  @Test func whatIsCommittedWhileAnIndexIsMadeIsInIt() async throws {
    for seed in Seeds.list(20, for: "index builds") {
      var random = SeededGenerator(seed)
      let declared: [RepositoryIndex<Thing>] = [.ordered(\.country, \.rating), .geo(\.latitude, \.longitude), .fullText(\.notes)]
      let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: declared))
      try await things.save(contentsOf: (0..<60).map { Thing.random($0, using: &random) })
      let before = try things.core.collectionState(things.collection).records.ordered()
      change(things) { indexes in for index in declared.indices { indexes.startBuilding(index) } }

      // Saved again, new, gone, and gone after it was saved again.
      let saved = (40..<90).map { Thing.random($0, using: &random) }
      try await things.save(contentsOf: saved)
      for id in [0, 45, 89] { try await things.delete(id - 500) }
      let built = try things.core.collectionState(things.collection).indexes.built(Array(declared.indices), over: RecordMap(before))
      change(things) { indexes in
        for index in declared.indices { indexes.finishBuilding(index, built[index]) }
      }

      let all = try await things.loadAll()
      let fresh = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: declared))
      try await fresh.save(contentsOf: all)
      let queries: [Query<Thing>] = [
        Query().where(#Predicate { $0.country == "JP" && $0.rating >= 1 }), Query().sorted(by: \.country, .reverse),
        Query().near(latitude: 10, longitude: 10), Query().matching("dawn"), Query().matching("light ca"),
      ]
      for query in queries {
        #expect(things.explain(query).access != .scan)
        let found = try await things.fetch(query)
        let expected = try await fresh.fetch(query)
        let isSame = found == expected  // outside, or a failure prints every record
        #expect(isSame, "\(fresh.explain(query)) | replay with LARDER_SEED=\(seed)")
      }
    }
  }

  /// Puts changed indexes in the place of the published ones, as the executor does when it begins and ends a build.
  private func change(_ things: LocalRepository<Thing>, _ body: (inout Larder.IndexSet) -> Void) {
    things.core.updateCollection(things.collection) { body(&$0.indexes) }
  }
}
