import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Finding by a property, existence, sums, changes and deletions of many give what the longer words for them give.
@Suite(.timeLimit(.minutes(15))) struct RecordShorthandTests {
  private struct Beach: Codable, Identifiable, Equatable {
    let id: Int
    var slug: String
    var rating: Int
    var depth: Double?
    var small: Int8 = 0
    var votes: Int?
  }

  private func beaches(_ indexes: [RepositoryIndex<Beach>] = [.unique(\.slug)]) async throws -> LocalRepository<Beach> {
    let beaches = try await LocalRepository(inMemory: RepositorySchema<Beach>("beaches", indexes: indexes), options: StoreOptions())
    try await beaches.save(
      contentsOf: (1...20).map { Beach(id: $0, slug: "beach-\($0)", rating: $0 % 5, depth: $0 == 3 ? nil : 0.5, votes: $0 < 3 ? $0 : nil) })
    return beaches
  }

  @Test func aRecordIsFoundByAnIndexedPropertyWithOneLook() async throws {
    for indexes: [RepositoryIndex<Beach>] in [[], [.unique(\.slug)], [.ordered(\.slug)]] {
      let beaches = try await beaches(indexes)
      let (found, none) = (try await beaches.find(by: \.slug, "beach-7"), try await beaches.find(by: \.slug, "beach-0"))
      #expect(found?.id == 7 && none == nil)
      let plan = beaches.explain(Query().where(\.slug, .equal, "beach-7"))
      #expect(indexes.isEmpty ? plan.access == .scan : plan.examinedRows == 1)
    }
    let beaches = try await beaches()
    let first = try await beaches.find(by: \.rating, 2)
    let deep = try await beaches.find(by: \.depth, nil)
    #expect(first?.id == 2 && deep?.id == 3)
    let erased: any Repository<Beach> = beaches
    let same = try await erased.find(by: \.slug, "beach-7")
    #expect(same?.id == 7)
  }

  @Test func numbersThatAreNoneAreEqualToNoneHereToo() async throws {
    struct Measured: Codable, Identifiable {
      let id: Int
      var isNone: Bool
      var value: Double { isNone ? .nan : -0.0 }
    }
    for indexes: [RepositoryIndex<Measured>] in [[], [.ordered(\.value)]] {
      let measured = try await LocalRepository(inMemory: RepositorySchema<Measured>("measured", indexes: indexes))
      try await measured.save(contentsOf: [Measured(id: 1, isNone: true), Measured(id: 2, isNone: false)])
      let (none, zero) = (try await measured.find(by: \.value, .nan), try await measured.find(by: \.value, 0))
      #expect(none == nil && zero?.id == 2)
    }
  }

  @Test func existenceNeedsNoDecode() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Spot>(backend: backend, schema: .init("things"))
    let spot = Spot("pier")
    try await old.save(spot)
    try await old.close()
    struct Stranger: Codable, Identifiable { let id: UUID; let colour: String }
    let strangers = try await LocalRepository<Stranger>(backend: backend, schema: .init("things"))
    let (stored, other) = (try await strangers.exists(spot.id), try await strangers.exists(UUID()))
    #expect(stored && !other)
    try await strangers.close()
    let error = await #expect(throws: RepositoryError.self) { try await strangers.exists(spot.id) }
    #expect(error?.code == .closed)

    let beaches = try await beaches()
    let erased: any Repository<Beach> = beaches
    let (here, notHere) = (try await erased.exists(1), try await erased.exists(99))
    let (some, none) = (
      try await beaches.exists(where: #Predicate { $0.rating == 4 }), try await beaches.exists(where: Query().filter { $0.id > 20 })
    )
    #expect(here && !notHere && some && !none)
  }

  @Test func sumsAreThoseOfTheRecordsThatMeetTheQuery() async throws {
    let beaches = try await beaches()
    let all = try await beaches.loadAll()
    let (sum, some) = (
      try await beaches.sum(of: \.rating), try await beaches.sum(of: \.id, in: Query().where(#Predicate { $0.rating == 1 }))
    )
    #expect(sum == all.map(\.rating).reduce(0, +) && some == all.filter { $0.rating == 1 }.map(\.id).reduce(0, +))
    let (depth, votes, none) = (
      try await beaches.sum(of: \.depth), try await beaches.sum(of: \.votes), try await beaches.sum(of: \.id, in: Query().limit(0))
    )
    #expect(depth == 9.5 && votes == 3 && none == 0)
  }

  @Test func aSumBeyondTheTypeIsRefusedInWhateverOrder() async throws {
    let beaches = try await beaches([])
    let values: [Int8] = [100, 100, -100, -100, 27]
    try await beaches.replaceAll(with: values.enumerated().map { Beach(id: $0, slug: "\($0)", rating: 0, small: $1) })
    // The values so far go beyond the type, the sum does not.
    let sum = try await beaches.sum(of: \.small)
    #expect(sum == 27)
    for sign: Int8 in [1, -1] {
      try await beaches.replaceAll(with: (0..<2).map { Beach(id: $0, slug: "\($0)", rating: 0, small: 100 * sign) })
      let error = await #expect(throws: RepositoryError.self) { try await beaches.sum(of: \.small) }
      #expect(error?.code == .unsupported)
    }
  }

  @Test func manyRecordsAreChangedAsOne() async throws {
    let beaches = try await beaches()
    let before = beaches.snapshot.revision
    let count = try await beaches.update(where: #Predicate { $0.rating == 4 }) { $0.rating = 9 }
    let nines = try await beaches.count(where: #Predicate { $0.rating == 9 })
    #expect(count == 4 && nines == 4 && beaches.snapshot.revision.number == before.number + 1)
    struct Refused: Error {}
    await #expect(throws: Refused.self) {
      try await beaches.update(where: Query()) { beach in
        beach.rating = 1
        if beach.id == 20 { throw Refused() }
      }
    }
    let error = await #expect(throws: RepositoryError.self) {
      try await beaches.update(where: Query().limit(1)) { $0 = Beach(id: 99, slug: "x", rating: 0) }
    }
    let still = try await beaches.count(where: #Predicate { $0.rating == 9 })
    #expect(still == 4 && error?.code == .invalidKey)
  }

  @Test func deletingAllKeepsWhatDoesNotDecodeUnlessTold() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Spot>(backend: backend, schema: .init("things"))
    try await old.save(Spot("pier"))
    try await old.close()
    struct Stranger: Codable, Identifiable { let id: UUID; let colour: String }
    let strangers = try await LocalRepository<Stranger>(backend: backend, schema: .init("things"))
    try await strangers.save(Stranger(id: UUID(), colour: "red"))
    let error = await #expect(throws: RepositoryError.self) { try await strangers.deleteAll() }
    #expect(error?.code == .decodingFailed && strangers.snapshot.count == 2)
    try await strangers.deleteAll(discardingUndecodable: true)
    #expect(strangers.snapshot.count == 0)
  }

  @Test func anItemIsDeletedByItsId() async throws {
    let beaches = try await beaches()
    var beach = try #require(try await beaches.find(by: 5))
    beach.rating = 77
    let (wasThere, isThere) = (try await beaches.delete(beach), try await beaches.delete(beach))
    #expect(wasThere && !isThere)
    let erased: any Repository<Beach> = beaches
    let other = try #require(try await beaches.find(by: 6))
    #expect(try await erased.delete(other))
  }

  @MainActor @Test func aDeletionThatThrowsLeavesTheCallerOnItsActor() async throws {
    let beaches = try await beaches()
    let beach = try #require(try await beaches.find(by: 5))
    try await beaches.close()
    do {
      try await beaches.delete(beach)
      Issue.record("the store is closed")
    } catch {
      MainActor.assertIsolated()
      #expect(error.code == .closed)
    }
  }

  @Test func aTypeThatIsItsOwnIdIsDeletedByIt() async throws {
    struct Tag: Codable, Hashable, Identifiable {
      let name: String
      var id: Tag { self }
    }
    let tags = try await LocalRepository<Tag>(inMemory: .init("tags"))
    try await tags.save(Tag(name: "a"))
    let wasThere = try await tags.delete(Tag(name: "a"))
    #expect(wasThere)
  }
}
