import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Pages, one after the other, are the whole answer, wherever the cursor comes to lie in an index.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct QueryPageTests {
  @Test(arguments: TestBackend.allCases)
  func pagesGiveWhatTheQueryGives(_ backend: TestBackend) async throws {
    for seed in Seeds.list(backend == .memory ? Torture.count(40, full: 500) : Torture.count(6, full: 50), for: "pages on \(backend)") {
      guard try await run(seed, on: backend) else { return }
    }
  }

  private func run(_ seed: UInt64, on backend: TestBackend) async throws -> Bool {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var random = SeededGenerator(seed)
    let indexes = QueryMaker.indexes(using: &random)
    let options = StoreOptions(durability: .buffered, checkpoint: .manual)
    let schema = RepositorySchema<Thing>("things", indexes: indexes)
    let things = try await LocalRepository(backend: try place.makeBackend(), schema: schema, options: options)
    let all = (0..<random.int(0..<200)).map { Thing.random($0, using: &random) }
    try await things.save(contentsOf: all)
    for _ in 0..<4 {
      let maker = QueryMaker(using: &random, indexes: indexes)
      var query = maker.query
      (query.shape.maximum, query.shape.skipped) = (nil, 0)
      if query.shape.words != nil, query.order.isEmpty, query.shape.near == nil { continue }  // refused: ranks change
      let limit = random.int(1..<20)
      var found: [Int] = []
      var cursor: PageCursor?
      repeat {
        let page = try await things.page(query, after: cursor, limit: limit)
        found += page.items.map(\.id)
        cursor = page.next
      } while cursor != nil && found.count <= all.count
      let expected = maker.answer(all, ignoringLimits: true).map(\.id)
      #expect(found == expected, "\(maker.text) by \(limit) | \(things.explain(query)) | replay with LARDER_SEED=\(seed)")
      if found != expected { return false }
    }
    try await things.close()
    return true
  }

  @Test(arguments: [false, true])
  func aPageInAGroupOfEqualsLooksAtItsOwnRecordsOnly(isReversed: Bool) async throws {
    let schema = RepositorySchema<Thing>("things", indexes: [.ordered(\.country)])
    let things = try await LocalRepository(inMemory: schema)
    var random = SeededGenerator(1)
    try await things.save(
      contentsOf: (0..<1_000).map { number in
        var thing = Thing.random(number, using: &random)
        thing.country = number < 900 ? "JP" : "NO"
        return thing
      })
    let query = Query<Thing>().sorted(by: \.country, isReversed ? .reverse : .forward)
    let cursor = try #require(try await things.page(query, limit: 700).next)
    let run = try await things.readyRun(query.limit(11))
    var examined = 0
    let found = try run.results(after: cursor, examined: &examined)
    #expect(found.map(\.item.id) == (isReversed ? Array(100..<111) : Array(200..<211)))
    #expect(examined <= 12)
  }

  /// Groups of up to 15 are gathered and larger ones visited in place.
  @Test func groupsOfAnySizeComeInOrderFromTheLastToTheFirst() async throws {
    let sizes = [1, 15, 16, 17, 2, 33, 16, 16, 1, 40, 14]
    let schema = RepositorySchema<Thing>("things", indexes: [.ordered(\.country)])
    let things = try await LocalRepository(inMemory: schema)
    var random = SeededGenerator(2)
    let countries = sizes.enumerated().flatMap { Array(repeating: "C\(10 + $0.offset)", count: $0.element) }.shuffled(using: &random)
    var all: [Thing] = []
    for (number, country) in countries.enumerated() {
      var thing = Thing.random(number, using: &random)
      thing.country = country
      all.append(thing)
    }
    try await things.save(contentsOf: all)
    let expected = all.sorted { $0.country != $1.country ? $0.country > $1.country : $0.id < $1.id }.map(\.id)
    let query = Query<Thing>().sorted(by: \.country, .reverse)
    for limit in 1...all.count { #expect(try await things.fetch(query.limit(limit)).map(\.id) == Array(expected.prefix(limit))) }
  }
}
