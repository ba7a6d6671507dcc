import LarderTesting
import Testing

@testable import Larder

/// Random live queries, compared with brute force whenever nothing is under way.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ResultsModelTests {
  @Test(arguments: [TestBackend.memory, .json, .sqlite])
  func liveResultsAreWhatBruteForceGives(_ backend: TestBackend) async throws {
    for seed in Seeds.list(
      backend == .memory ? Torture.count(25, full: 250) : Torture.count(4, full: 25), for: "live queries on \(backend)")
    {
      do {
        try await run(seed, on: backend)
      } catch {
        Issue.record("\(error); replay with LARDER_SEED=\(seed)")
        return
      }
    }
  }

  private struct Reader {
    let maker: QueryMaker
    var iterator: QueryResults<Thing>.AsyncIterator
    var shown: [Thing]
  }

  private func run(_ seed: UInt64, on backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var random = SeededGenerator(seed)
    let indexes = QueryMaker.indexes(using: &random)
    let options = StoreOptions(durability: .buffered, checkpoint: .manual)
    let things = try await LocalRepository(
      backend: try place.makeBackend(), schema: RepositorySchema<Thing>("things", indexes: indexes), options: options)
    try await things.save(contentsOf: (0..<random.int(0..<80)).map { Thing.random($0, using: &random) })
    var readers: [Reader] = []
    for _ in 0..<4 {
      let maker = QueryMaker(using: &random, indexes: indexes)
      var iterator = things.results(of: maker.query).makeAsyncIterator()
      let first = try #require(try await iterator.next())
      readers.append(Reader(maker: maker, iterator: iterator, shown: first))
    }
    for _ in 0..<8 {
      try await write(to: things, using: &random)
      let all = try await things.loadAll()
      let revisions = things.snapshot
      for index in readers.indices where random.chance(70) {
        let expected = readers[index].maker.answer(all)
        // A result that is the same is not told, so the reader only asks for one that differs; the newest comes first.
        let shown = readers[index].shown
        if shown != expected { readers[index].shown = try #require(try await readers[index].iterator.next()) }
        let found = readers[index].shown
        try #require(found.map(\.id) == expected.map(\.id), "\(readers[index].maker.text)")
        try #require(found == expected && revisions.revision == things.snapshot.revision)
      }
    }
    try await things.close()
    for index in readers.indices {
      while let result = try await readers[index].iterator.next() { readers[index].shown = result }
      try #require(readers[index].shown == readers[index].maker.answer(things.snapshot.loadAll()), "\(readers[index].maker.text)")
    }
  }

  /// A few single writes, a batch, or everything anew; several tasks at once.
  private func write(to things: LocalRepository<Thing>, using random: inout SeededGenerator) async throws {
    if random.chance(10) {
      try await things.replaceAll(with: (0..<random.int(0..<120)).map { Thing.random($0, using: &random) })
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<random.int(1..<12) {
        let thing = Thing.random(random.int(0..<90), using: &random)
        let isDeletion = random.chance(45)
        group.addTask { if isDeletion { try await things.delete(thing.id) } else { try await things.save(thing) } }
      }
      try await group.waitForAll()
    }
    try await things.settle()
  }
}
