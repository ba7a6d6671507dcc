import Foundation
import Testing

@testable import Larder

/// Shorter ways to ask give the same: predicates alone, snapshots, transactions.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ShorthandTests {
  @Test func snapshotsAndTransactionsAnswerAsTheRepositoryDoes() async throws {
    for seed in Seeds.list(Torture.count(20, full: 150), for: "snapshots") {
      var random = SeededGenerator(seed)
      let indexes = QueryMaker.indexes(using: &random)
      let options = StoreOptions(indexing: random.chance(50) ? .eager : .onFirstNeed)
      let schema = RepositorySchema<Thing>("things", indexes: indexes)
      let things = try await LocalRepository(backend: InMemoryBackend(), schema: schema, options: options)
      try await things.save(contentsOf: (0..<random.int(0..<100)).map { Thing.random($0, using: &random) })
      let maker = QueryMaker(using: &random, indexes: indexes)
      let snapshot = things.snapshot
      let expected = maker.answer(snapshot.loadAll())
      try await things.save(contentsOf: (200..<230).map { Thing.random($0, using: &random) })
      let hint: Comment = "\(maker.text) | replay with LARDER_SEED=\(seed)"
      let (found, count, first) = (try snapshot.fetch(maker.query), try snapshot.count(maker.query), try snapshot.first(maker.query))
      #expect(found.map(\.id) == expected.map(\.id) && count == expected.count && first == expected.first, hint)
      let now = maker.answer(things.snapshot.loadAll())
      let inside = try await things.transaction { transaction in
        (try transaction.count(maker.query, in: things), try transaction.first(maker.query, in: things))
      }
      #expect(inside.0 == now.count && inside.1 == now.first, hint)
    }
  }

  @Test func predicatesAloneAreQueries() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: [.ordered(\.rating)]))
    var random = SeededGenerator(5)
    let all = (0..<60).map { Thing.random($0, using: &random) }
    try await things.save(contentsOf: all)
    let good = all.filter { $0.rating >= 3 }
    let found = try await things.fetch(where: #Predicate { $0.rating >= 3 })
    let first = try await things.first(where: #Predicate { $0.rating >= 3 })
    let count = try await things.count(where: #Predicate { $0.rating >= 3 })
    #expect(found == good && first == good.first && count == good.count)
    let erased: any Repository<Thing> = things
    let counted = try await erased.count(where: #Predicate { $0.rating >= 3 })
    #expect(counted == good.count)
    let deleted = try await things.delete(where: #Predicate { $0.rating >= 3 })
    let left = try await things.count()
    #expect(deleted == good.count && left == 60 - deleted)
  }

  @Test func extremesAreThoseOfWhateverCanBeIndexed() async throws {
    for indexes in [[], QueryMaker.indexes] {
      let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: indexes))
      let none = try await things.max(of: \.score)
      #expect(none == nil)
      var random = SeededGenerator(6)
      let all = (0..<80).map { Thing.random($0, using: &random) }
      try await things.save(contentsOf: all)
      let (least, greatest) = (try await things.min(of: \.kind), try await things.max(of: \.kind))
      #expect(least == .beach && greatest == .summit)
      let (shut, open) = (try await things.min(of: \.isOpen), try await things.max(of: \.isOpen))
      #expect(shut == false && open == true)
      let (low, high) = (try await things.min(of: \.score), try await things.max(of: \.score, in: Query().limit(9)))
      #expect(low == all.compactMap(\.score).min() && high == all.prefix(9).compactMap(\.score).max())
      let sure = try await things.min(of: \.isSure)
      #expect(sure == false)
    }
  }

  @Test func anEnumerationIsCountedByItsIndexAlone() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: [.ordered(\.kind)]))
    var random = SeededGenerator(8)
    let all = (0..<500).map { Thing.random($0, using: &random) }
    try await things.save(contentsOf: all)
    let kind = Thing.Kind.pier
    let query = Query<Thing>().where(#Predicate { $0.kind == kind })
    let plan = things.explain(query)
    #expect(plan.conditions == ["kind ="] && plan.residual.isEmpty)
    let run = try await things.readyRun(query)
    #expect(run.run.knownCount != nil)
    let count = try await things.count(query)
    #expect(count == all.count { $0.kind == kind })
  }

  @Test func aPlanNamesEachConditionOnceAndItsBoundsAsTheyAre() async throws {
    let schema = RepositorySchema<Thing>("things", indexes: [.ordered(\.rating), .ordered(\.height), .geo(\.latitude, \.longitude)])
    let things = try await LocalRepository(inMemory: schema)
    let (low, high) = (1, 4)
    let cases: [(Query<Thing>, String)] = [
      (Query().where(#Predicate { $0.rating >= low && $0.rating < high }), "rating >= <"),
      (Query().where(#Predicate { $0.rating > low && $0.rating <= high }), "rating > <="),
      (Query().where(#Predicate { $0.height > 1 }), "height >"),
      (Query().where(#Predicate { $0.height <= 1 }), "height <="),
    ]
    for (query, text) in cases { #expect(things.explain(query).conditions == [text]) }
    let checked = things.explain(
      Query().where(#Predicate { $0.rating == low }).filter { $0.isOpen }.filter { $0.id > 3 }
        .where(#Predicate { $0.country == "JP" }).where(#Predicate { $0.country != "" }).where(#Predicate { $0.country > "A" }))
    #expect(checked.residual == ["country", "predicate", "filter"])
  }

  @Test func pagesCarryWhatTheQueryHasFoundOut() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: QueryMaker.indexes))
    var random = SeededGenerator(9)
    try await things.save(contentsOf: (0..<40).map { Thing.random($0, using: &random) })
    for query in [Query<Thing>().near(latitude: 3, longitude: 4), Query<Thing>().matching("light").sorted(by: \.id)] {
      let all = try await things.matches(query)
      let page = try await things.page(query, limit: 5)
      #expect(page.items == all.prefix(5).map { $0.item } && page.matches == Array(all.prefix(5)))
      #expect(page.matches.allSatisfy { $0.distance != nil || $0.score != nil })
    }
  }

  @Test func numbersThatAreNoneAreOneGroup() async throws {
    for indexes: [RepositoryIndex<Measured>] in [[], [.ordered(\.value)]] {
      let measured = try await LocalRepository(inMemory: RepositorySchema<Measured>("measured", indexes: indexes))
      try await measured.save(contentsOf: (0..<9).map { Measured(id: $0, code: $0 % 3) })
      let groups = try await measured.grouped(by: \.value)
      #expect(groups.count == 3)
      #expect(groups.first { $0.key.isNaN }?.value == 3 && groups[0] == 3 && groups[1] == 3)
    }
  }

  /// A value with a computed number, which is none for some.
  private struct Measured: Codable, Identifiable {
    let id: Int
    let code: Int
    var value: Double { code == 2 ? .nan : Double(code) }
  }

  @Test func anOffsetIsFoundByItsRank() async throws {
    for seed in Seeds.list(Torture.count(8, full: 60), for: "offsets") {
      var random = SeededGenerator(seed)
      let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: QueryMaker.indexes))
      let all = (0..<700).map { Thing.random($0, using: &random) }
      try await things.save(contentsOf: all)
      let offset = random.int(0..<750)
      let queries: [(Query<Thing>, (Thing, Thing) -> Bool)] = [
        (Query().sorted(by: \.rating), { ($0.rating, $0.id) < ($1.rating, $1.id) }),
        (Query().sorted(by: \.rating, .reverse), { ($1.rating, $0.id) < ($0.rating, $1.id) }),
        (Query().sorted(by: \.height, .reverse), { ($1.height, $0.id) < ($0.height, $1.id) }),
        (Query().sorted(by: \.id), { $0.id < $1.id }), (Query().sorted(by: \.id, .reverse), { $0.id > $1.id }),
        (Query().where(#Predicate { $0.rating >= 2 }), { $0.id < $1.id }),
        (Query().where(#Predicate { $0.rating >= 2 }).sorted(by: \.rating, .reverse), { ($1.rating, $0.id) < ($0.rating, $1.id) }),
      ]
      for (place, (query, order)) in queries.enumerated() {
        let matching = place >= 5 ? all.filter { $0.rating >= 2 } : all
        let limit = random.chance(50) ? random.int(0..<30) : nil
        let found = try await things.fetch(limit.map { query.offset(offset).limit($0) } ?? query.offset(offset))
        let expected = matching.sorted(by: order).dropFirst(offset).prefix(limit ?? .max)
        #expect(found.map(\.id) == expected.map(\.id), "query \(place), offset \(offset) | replay with LARDER_SEED=\(seed)")
      }
    }
  }
}
