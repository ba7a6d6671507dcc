import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Counting, extremes and groups, with and without an index that knows the answer; and what `explain` says of it.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct AggregateTests {
  @Test func aggregatesAreThoseOfAllRecords() async throws {
    for seed in Seeds.list(Torture.count(20, full: 200), for: "aggregates") {
      var random = SeededGenerator(seed)
      let indexes = QueryMaker.indexes(using: &random)
      let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: indexes))
      let all = (0..<random.int(0..<100)).map { Thing.random($0, using: &random) }
      try await things.save(contentsOf: all)
      let maker = QueryMaker(using: &random, indexes: indexes)
      var query = maker.query
      (query.shape.maximum, query.shape.skipped) = (nil, 0)
      let matching = maker.answer(all, ignoringLimits: true)
      let hint: Comment = "\(maker.text) | replay with LARDER_SEED=\(seed)"
      let part = try await things.max(of: \.rating, in: maker.query)
      #expect(part == maker.answer(all).map(\.rating).max(), hint)
      let least = try await things.min(of: \.rating, in: query)
      let greatest = try await things.max(of: \.day, in: query)
      #expect(least == matching.map(\.rating).min() && greatest == matching.map(\.day).max(), hint)
      let byKind = try await things.grouped(by: \.kind, query)
      #expect(byKind == Dictionary(grouping: matching, by: \.kind).mapValues(\.count), hint)
      let byCountry = try await things.grouped(by: \.country)
      #expect(byCountry == Dictionary(grouping: all, by: \.country).mapValues(\.count), hint)
      let byScore = try await things.grouped(by: \.score)
      #expect(byScore == Dictionary(grouping: all, by: \.score).mapValues(\.count), hint)
    }
  }

  @Test func aCountThatAnIndexAnswersAgreesWithTheRecords() async throws {
    let place = try TestBackend.json.factory.makePlace()
    defer { place.remove() }
    let schema = RepositorySchema<Thing>("things", indexes: [.ordered(\.country, \.rating)])
    let things = try await LocalRepository(backend: try place.makeBackend(), schema: schema, options: .init(durability: .buffered))
    var random = SeededGenerator(7)
    try await things.save(contentsOf: (0..<200).map { Thing.random($0, using: &random) })
    let run = try await things.readyRun(Query().where(#Predicate { $0.country == "JP" && $0.rating > 2 }))
    #expect(run.run.isExact)
    let count = try run.count()
    let found = try run.results().count
    #expect(count == found)
    try await things.close()
  }

  @Test func aPlanNamesTheIndexAndSaysWhatIsChecked() async throws {
    let schema = RepositorySchema<Thing>(
      "things", indexes: [.ordered(\.country, \.rating), .geo(\.latitude, \.longitude), .fullText(\.notes)])
    let things = try await LocalRepository(inMemory: schema)
    var random = SeededGenerator(3)
    try await things.save(contentsOf: (0..<300).map { Thing.random($0, using: &random) })

    let best = things.explain(
      Query().where(#Predicate { $0.country == "JP" && $0.rating >= 2 }).sorted(by: \.rating, .reverse).limit(5))
    #expect(best.index == "ordered(country, rating)")
    #expect(best.residual.isEmpty && best.order == .index)
    #expect(best.estimatedRows == 5 && best.examinedRows == 5)
    #expect(
      "\(best)" == "ordered(country, rating) [country =, rating >=], order from the index, 5 rows estimated, 5 examined")

    let checked = things.explain(Query().where(#Predicate { $0.country == "JP" && $0.height != 0 }).filter { $0.isOpen })
    #expect(checked.index == "ordered(country, rating)" && checked.residual == ["predicate", "filter"])
    #expect(things.explain(Query().near(latitude: 1, longitude: 1).limit(3)).index == "geo(latitude, longitude)")
    #expect(things.explain(Query().matching("dawn")).index == "fullText(notes)")

    let scan = things.explain(Query().where(#Predicate { $0.height > 1 }))
    #expect(scan.access == .scan && scan.index == nil && scan.examinedRows == 300)
    #expect("\(scan)".hasPrefix("scan of all records, checking height"))
    #expect(things.explain(Query().where(#Predicate { $0.rating > 1 && $0.country == "JP" && $0.country == "NO" })).index != nil)
  }

  @Test func whatCannotBeAnsweredIsRefusedWithTheReason() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: [.ordered(\.rating)]))
    var random = SeededGenerator(3)
    try await things.save(Thing.random(1, using: &random))
    let huge = Int.max
    let queries: [(Query<Thing>, String)] = [
      (Query().near(latitude: 0, longitude: 0), "geo"), (Query().matching("x"), "fullText"), (Query().limit(-1), "negative"),
      (Query().offset(-1), "negative"), (Query().where(#Predicate { $0.rating + huge + huge > 1 }), "overflow"),
    ]
    for (query, reason) in queries {
      let error = await #expect(throws: RepositoryError.self) { try await things.fetch(query) }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains(reason) ?? false, "\(String(describing: error))")
      #expect(things.explain(query).access == .refused)
    }
    // So do results that are kept up, which run a wider query than the one that was asked for.
    for query in [Query<Thing>().limit(-1), Query().offset(-1), Query().limit(5).offset(-1), Query().sorted(by: \.rating).limit(-3)] {
      var results = things.results(of: query).makeAsyncIterator()
      do throws(RepositoryError) {
        let first = try await results.next()
        Issue.record("\(String(describing: first?.count)) results")
      } catch {
        #expect(error.code == .unsupported)
      }
    }
  }

  @Test func anIndexIsMadeWhileWritesGoOn() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: QueryMaker.indexes))
    var random = SeededGenerator(11)
    try await things.save(contentsOf: (0..<3_000).map { Thing.random($0, using: &random) })
    let more = (0..<300).map { Thing.random($0 * 10, using: &random) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for thing in more { group.addTask { try await things.save(thing) } }
      for _ in 0..<4 {
        group.addTask {
          // Whatever is found agrees with one committed state, and so with itself.
          let found = try await things.fetch(Query().where(#Predicate { $0.rating == 3 }))
          #expect(found.allSatisfy { $0.rating == 3 })
          _ = try await things.fetch(Query().near(latitude: 0, longitude: 0).limit(5))
          _ = try await things.fetch(Query().matching("dawn").limit(5))
        }
      }
      try await group.waitForAll()
    }
    let all = try await things.loadAll()
    for rating in 0...5 {
      let count = try await things.count(Query().where(#Predicate { $0.rating == rating }))
      #expect(count == all.count { $0.rating == rating })
    }
    let words = try await things.fetch(Query().matching("dawn").sorted(by: \.id))
    #expect(words.map(\.id) == all.filter { $0.notes.contains("dawn") }.map(\.id).sorted())
    let near = try await things.fetch(Query().near(latitude: 0, longitude: 0))
    #expect(near.count == all.count)
  }
}
