import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Whatever is indexed, on whatever backend: a query gives what filtering and sorting all records would give.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct QueryEquivalenceTests {
  @Test(arguments: TestBackend.allCases)
  func aRandomQueryGivesWhatBruteForceGives(_ backend: TestBackend) async throws {
    for seed in Seeds.list(
      QueryMaker.count(backend == .memory ? Torture.count(60, full: 1_000) : Torture.count(10, full: 100)), for: "queries on \(backend)")
    {
      guard try await run(seed, on: backend) else { return }
    }
  }

  @Test(arguments: [TestBackend.memory, .json, .sqlite])
  func aRandomQueryOfRecordsInTheStorageGivesWhatBruteForceGives(_ backend: TestBackend) async throws {
    let count = QueryMaker.count(backend == .memory ? Torture.count(40, full: 1_000) : Torture.count(10, full: 100))
    for seed in Seeds.list(count, for: "queries on \(backend), on disk") {
      guard try await run(seed, on: backend, isPaged: true) else { return }
    }
  }

  /// Writes, queries, writes again; `false` when something was wrong.
  private func run(_ seed: UInt64, on backend: TestBackend, isPaged: Bool = false) async throws -> Bool {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var random = SeededGenerator(seed)
    let indexes = QueryMaker.indexes(using: &random)
    let schema = RepositorySchema<Thing>("things", indexes: indexes)
    var options = StoreOptions(durability: .buffered, checkpoint: .manual, indexing: random.chance(50) ? .eager : .onFirstNeed)
    if isPaged { options.residency = .onDisk(cache: .bytes([0, 20_000, 1_000_000].randomElement(using: &random) ?? 0)) }
    // Small blocks of keys at random boundaries, as large indexes have.
    let (seedOfBlocks, isScattered) = (random.next(), isPaged && random.chance(70))
    func make() throws -> any StorageBackend {
      guard isScattered, let inner = try place.makeBackend() as? any PagingBackend else { return try place.makeBackend() }
      return ScatteringBackend(inner, seed: seedOfBlocks)
    }
    var things = try await LocalRepository(backend: try make(), schema: schema, options: options)
    let first = (0..<random.int(0..<80)).map { Thing.random($0, using: &random) }
    try await things.save(contentsOf: first)
    var model = Dictionary(first.map { ($0.id, $0) }) { $1 }
    for _ in 0..<3 {
      let maker = QueryMaker(using: &random, indexes: indexes)
      things.core.indexBuilder.stored.copiedCount.store(random.int(1..<30), ordering: .relaxed)
      guard try await isRight(things, model, maker, seed) else { return false }
      if isPaged, random.chance(70) { await things.core.indexBuilder.stored.awaitCopies() }
      // The records move from the changes in memory to the storage, with the indexes as they are, or without any.
      if isPaged, random.chance(50) { try await things.checkpoint() }
      if isPaged, random.chance(30) {
        try await things.close()
        things = try await LocalRepository(backend: try make(), schema: schema, options: options)
      }
      for _ in 0..<random.int(0..<10) {
        let thing = Thing.random(random.int(0..<90), using: &random)
        if random.chance(50) {
          model[thing.id] = thing
          try await things.save(thing)
        } else {
          model[thing.id] = nil
          try await things.delete(thing.id)
        }
      }
      guard try await isRight(things, model, maker, seed) else { return false }
      if isPaged {
        let wrong = try await things.wrongStoredIndex()
        #expect(wrong == nil, "replay with LARDER_SEED=\(seed)")
        if wrong != nil { return false }
      }
    }
    if random.chance(30) {
      let maker = QueryMaker(using: &random, indexes: indexes)
      for thing in maker.answer(model.values) { model[thing.id] = nil }
      try await things.delete(where: maker.query)
      guard try await isRight(things, model, QueryMaker(using: &random, indexes: indexes), seed) else { return false }
    }
    try await things.close()
    return true
  }

  private func isRight(
    _ things: LocalRepository<Thing>, _ model: [Int: Thing], _ maker: QueryMaker, _ seed: UInt64
  ) async throws -> Bool {
    let expected = maker.answer(model.values)
    let found = try await things.fetch(maker.query)
    let plan = things.explain(maker.query)
    let hint: Comment = "\(maker.text) | \(plan) | replay with LARDER_SEED=\(seed)"
    let count = try await things.count(maker.query)
    let first = try await things.first(maker.query)
    let inside = try await things.transaction { try $0.fetch(maker.query, in: things) }
    let groups = try await things.grouped(by: \.country)
    #expect(groups == Dictionary(grouping: model.values, by: \.country).mapValues(\.count), hint)
    // Ids only: a failure prints them.
    #expect(found.map(\.id) == expected.map(\.id), hint)
    #expect(inside.map(\.id) == expected.map(\.id), hint)
    #expect(count == expected.count, hint)
    #expect(first?.id == expected.first?.id, hint)
    return found == expected && count == expected.count && first == expected.first && inside == expected
  }
}
