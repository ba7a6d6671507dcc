import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Ordered indexes whose keys stay in the storage.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 5))) struct StoredIndexTests {
  // MARK: Keys

  private static func value(using random: inout SeededGenerator) -> IndexValue {
    let texts = [
      "", "a", "a\u{0}", "a\u{0}b", "ab", "é", "e\u{301}", "Å", "A\u{30A}", "z", "\u{FF}", "日本", "😀", "e\u{301}x", "éa", "e\u{301}a",
      "\u{212B}", "Åz", "ex", "a\u{1}",
    ]
    let numbers: [Double] = [0, -0.0, 1, -1, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 0.1, -0.1, .nan]
    switch random.int(0..<9) {
    case 0: return .null
    case 1: return IndexValue(random.chance(50))
    case 2: return IndexValue(Int64.random(in: -3...3, using: &random))
    case 3: return IndexValue(Int64.random(in: .min ... .max, using: &random))
    case 4: return IndexValue(UInt64.random(in: .min ... .max, using: &random))
    case 5: return IndexValue(numbers.randomElement(using: &random) ?? 0)
    case 6: return IndexValue(UUID(uuid: (random.chance(50) ? 1 : 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, random.chance(50) ? 9 : 0)))
    default:
      return IndexValue(
        (texts.randomElement(using: &random) ?? "") + (random.chance(30) ? (texts.randomElement(using: &random) ?? "") : ""))
    }
  }

  @Test func keysHaveTheOrderOfEntries() throws {
    for seed in Seeds.list(Torture.count(300, full: 5_000), for: "index keys") {
      var random = SeededGenerator(seed)
      let columns = random.int(1..<4)
      let isNumbered = random.chance(50)
      let order = IndexEntry.Order(descending: (0..<columns).map { _ in random.chance(50) }, keys: isNumbered ? .numbers : .bytes)
      let entries = (0..<30).map { _ in
        let id =
          isNumbered ? "\(Int64.random(in: -120...120, using: &random))" : ["a", "ab", "é", "", "z"].randomElement(using: &random) ?? ""
        return IndexEntry(
          values: (0..<columns).map { _ in Self.value(using: &random) }, slot: RecordSlot(stubOf: RecordKey(id)), order: order)
      }
      let keys = entries.map { IndexKey.bytes(of: $0) }
      for (entry, key) in zip(entries, keys) {
        let read = try #require(IndexKey.entry(key, columns: columns, order))
        #expect(read == entry && read.slot.key == entry.slot.key, "seed \(seed): \(entry.values)")
        #expect(IndexKey.entry(key.dropLast(key.count), columns: columns, order) == nil)
        for (other, otherKey) in zip(entries, keys) {
          #expect(key.precedes(otherKey) == (entry < other), "seed \(seed): \(entry.values) \(other.values)")
          // The bytes of the first values begin the keys of exactly the entries with these values.
          for count in 1...columns {
            let prefix = IndexKey.bytes(Array(other.values.prefix(count)), order)
            #expect(key.starts(with: prefix) == entry.hasValues(of: other, inFirst: count), "seed \(seed)")
          }
        }
      }
    }
  }

  @Test func cutAndForeignKeysAreNoEntries() throws {
    var random = SeededGenerator(1)
    for _ in 0..<2_000 {
      let order = IndexEntry.Order(descending: [random.chance(50), false], keys: random.chance(50) ? .numbers : .bytes)
      let entry = IndexEntry(
        values: [Self.value(using: &random), Self.value(using: &random)], slot: RecordSlot(stubOf: RecordKey("7")), order: order)
      var key = Data(IndexKey.bytes(of: entry))
      if random.chance(50) {
        key = Data(key.prefix(random.int(0..<key.count)))
      } else {
        key[random.int(0..<key.count)] ^= 1 << random.int(0..<8)
      }
      // No bytes trap, and bytes that are read as an entry have an order among the others.
      if let read = IndexKey.entry(key, columns: 2, order) { #expect(!(read < read)) }
    }
  }

  // MARK: Life

  struct Spot: Codable, Identifiable, Sendable, Equatable {
    var id: Int
    var country: String
    var rating: Int
  }

  private static let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.country, \.rating), .ordered(\.rating)])
  private static let query = Query<Spot>().where(\.country, .equal, "JP").sorted(by: \.rating).limit(5)

  private static func open(_ backend: any StorageBackend) async throws -> LocalRepository<Spot> {
    try await LocalRepository(backend: backend, schema: schema, options: StoreOptions(residency: .onDisk(cache: .bytes(10_000))))
  }

  private static func fill(_ spots: LocalRepository<Spot>, _ count: Int = 3_000) async throws {
    try await spots.save(contentsOf: (0..<count).map { Spot(id: $0, country: ["JP", "FR", "NO"][$0 % 3], rating: $0 % 100) })
  }

  /// Makes a closed store whose indexes are in the storage.
  private static func makeIndexed() async throws -> InMemoryBackend {
    let backend = InMemoryBackend()
    let spots = try await open(backend)
    try await fill(spots)
    _ = try await spots.fetch(query)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored())
    try await spots.close()
    return backend
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json])
  func anIndexIsCopiedOnceAndUsedAfterReopening(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    var spots = try await Self.open(try place.makeBackend())
    try await Self.fill(spots)
    let first = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored())
    #expect(try await spots.fetch(Self.query) == first)
    try await spots.save(Spot(id: 9_000, country: "JP", rating: -1))
    try await spots.delete(first[1].id)
    let second = try await spots.fetch(Self.query)
    #expect(second.map(\.rating) == [-1, 0, 0, 0, 0] && second[0].id == 9_000 && spots.isStored())
    try await spots.close()

    let counting = FaultInjectingBackend(try place.makeBackend())
    spots = try await Self.open(counting)
    #expect(spots.isStored())
    let before = counting.calls(.read)
    #expect(try await spots.fetch(Self.query) == second)
    // The boundaries, two blocks at most, and the five records.
    #expect(counting.calls(.read) - before <= 9)
    #expect("\(spots.explain(Self.query))".contains("ordered(country, rating)"))
    try await spots.close()
  }

  @Test func aCommitOfAnotherOpeningDropsTheIndex() async throws {
    let backend = try await Self.makeIndexed()
    // A repository that holds its records in memory does not change the stored indexes.
    let other = try await LocalRepository<Spot>(backend: backend, schema: Self.schema)
    try await other.save(Spot(id: 3, country: "JP", rating: -7))
    try await other.close()
    let spots = try await Self.open(backend)
    #expect(!spots.isStored())
    #expect(try await spots.fetch(Self.query).first?.rating == -7)
    try await spots.close()
  }

  @Test func anotherSchemaVersionHasAnotherIndex() async throws {
    let backend = try await Self.makeIndexed()
    let schema = RepositorySchema<Spot>("spots", version: 2, indexes: Self.schema.indexes)
    let spots = try await LocalRepository(
      backend: backend, schema: schema, options: StoreOptions(residency: .onDisk(cache: .bytes(10_000))))
    #expect(!spots.isStored())
    try await spots.close()
  }

  /// A spot whose indexed property is decoded in another way than when the index was stored.
  struct Ranked: Codable, Identifiable, Sendable, Equatable {
    var id: Int
    var rank: Int
    var half: Int { rank / 2 }
    static let sign = Mutex(1)

    init(id: Int, rank: Int) { (self.id, self.rank) = (id, rank) }

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      (id, rank) = (try values.decode(Int.self, forKey: .id), try values.decode(Int.self, forKey: .rank) * Self.sign.withLock { $0 })
    }
  }

  @Test func anIndexOfOtherValuesIsBuiltAnew() async throws {
    let backend = InMemoryBackend()
    let schema = RepositorySchema<Ranked>("ranked", indexes: [.ordered(\.rank), .ordered(\.half)])
    func open() async throws -> LocalRepository<Ranked> {
      try await LocalRepository(backend: backend, schema: schema, options: StoreOptions(residency: .onDisk(cache: .bytes(10_000))))
    }
    let query = Query<Ranked>().sorted(by: \.rank).limit(3)
    var items = try await open()
    try await items.save(contentsOf: (1...500).map { Ranked(id: $0, rank: $0) })
    #expect(try await items.fetch(query).map(\.id) == [1, 2, 3])
    await items.core.indexBuilder.stored.awaitCopies()
    try await items.close()
    Ranked.sign.withLock { $0 = -1 }
    defer { Ranked.sign.withLock { $0 = 1 } }
    items = try await open()
    let snapshot = items.snapshot
    #expect(try snapshot.fetch(query).map(\.id) == [500, 499, 498])
    let reopened = items
    #expect(try await reopened.transaction { try $0.fetch(query, in: reopened) }.map(\.id) == [500, 499, 498])
    #expect(try await items.fetch(query).map(\.id) == [500, 499, 498])
    await items.core.indexBuilder.stored.awaitCopies()
    #expect(items.isStored())
    #expect(try await items.fetch(query).map(\.id) == [500, 499, 498])
    let report = await items.core.verify()
    #expect(report.isSound)
    #expect(report.damagedIndexes.map(\.code) == [.corrupted])
    #expect(report.damagedIndexes.first?.message.contains("expected a record with the values") == true)
    try await items.close()
  }

  @Test func aLargeBlockIsDivided() async throws {
    let backend = InMemoryBackend()
    var spots = try await Self.open(backend)
    try await spots.save(Spot(id: 0, country: "JP", rating: 0))
    _ = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored())
    try await Self.fill(spots, 6_000)
    await spots.core.executor.run { [core = spots.core] in core.moveBase() }
    _ = try await spots.fetch(Self.query)
    try await spots.save(Spot(id: 9_000, country: "JP", rating: -1))
    await spots.core.executor.run { [core = spots.core] in core.moveBase() }
    let id = try #require(spots.core.state.collections[spots.collection].indexes.storedEntries(0)).run.id
    #expect(try backend.keepBase().boundaries(of: id).count > 10)
    #expect(try await spots.fetch(Self.query).map(\.rating) == [-1, 0, 0, 0, 0])
    #expect(try await spots.count(Query().where(\.country, .equal, "JP")) == 2_001)
    try await spots.close()
    spots = try await Self.open(backend)
    #expect(try await spots.fetch(Self.query).map(\.rating) == [-1, 0, 0, 0, 0])
    try await spots.close()
  }

  @Test func aWriteThatIsTakenBackEditsNoKey() async throws {
    let spots = try await Self.open(InMemoryBackend())
    try await Self.fill(spots)
    _ = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    struct Refusal: Error {}
    // The writes are staged together, as one group, because the executor is busy until all of them wait.
    let gate = DispatchSemaphore(value: 0)
    spots.core.executor.queue.async { gate.wait() }
    let one = Task { try await spots.save(Spot(id: 1, country: "JP", rating: -1)) }
    let two = Task {
      try await spots.transaction { transaction in
        try transaction.save(Spot(id: 2, country: "JP", rating: -2), in: spots)
        throw Refusal()
      }
    }
    let three = Task { try await spots.save(Spot(id: 3, country: "JP", rating: -3)) }
    while spots.core.waitingWriteCount < 3 { await Task.yield() }
    gate.signal()
    _ = (try await one.value, try await three.value)
    await #expect(throws: Refusal.self) { try await two.value }
    #expect(spots.isStored() && spots.isStored(1))
    #expect(try await spots.wrongStoredIndex() == nil)
    #expect(try await spots.fetch(Self.query).map(\.rating) == [-3, -1, 0, 0, 0])
    try await spots.close()
  }

  @Test func aLongTextKeepsTheIndexInMemory() async throws {
    let backend = InMemoryBackend()
    let spots = try await Self.open(backend)
    try await Self.fill(spots, 500)
    _ = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored() && spots.isStored(1))
    let long = Spot(id: 7_000, country: String(repeating: "é", count: 1_200), rating: 1)
    try await spots.save(long)
    // The other index does not have the text.
    #expect(!spots.isStored() && spots.isStored(1))
    #expect(try await spots.fetch(Query().where(\.country, .equal, long.country)) == [long])
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(!spots.isStored())
    try await spots.delete(7_000)
    #expect(try await spots.fetch(Self.query).count == 5)
    try await spots.close()
  }

  @Test func aRecordThatDoesNotDecodeKeepsTheIndexInMemory() async throws {
    typealias Note = ResidencyHistoryTests.Note
    let schema = RepositorySchema<Note>("notes", indexes: [.ordered(\.rank)])
    let options = StoreOptions(residency: .onDisk(cache: .bytes(10_000)))
    let notes = try await LocalRepository(backend: InMemoryBackend(), schema: schema, options: options)
    let query = Query<Note>().sorted(by: \.rank)
    try await notes.save(contentsOf: (0..<9).map { Note(id: "\($0)", text: "pier", rank: 9 - $0) })
    _ = try await notes.fetch(query)
    await notes.core.indexBuilder.stored.awaitCopies()
    #expect(notes.isStored())
    try await notes.save(Note(id: "x", text: "broken", rank: 0))
    #expect(!notes.isStored())
    #expect(try await notes.fetch(query).count == 9)
    await notes.core.indexBuilder.stored.awaitCopies()
    #expect(!notes.isStored())
    try await notes.delete("x")
    try await notes.close()
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json])
  func commitsBesideTheCopyEditWhatIsCopied(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    let spots = try await Self.open(try place.makeBackend())
    try await Self.fill(spots, 900)
    spots.core.indexBuilder.stored.copiedCount.store(10, ordering: .relaxed)
    async let found = spots.fetch(Self.query)
    // The copies of both indexes take 182 transactions, between which these commits come.
    for number in 0..<300 {
      let id = number * 7 % 1_000
      if number.isMultiple(of: 5) {
        try await spots.delete(id)
      } else {
        try await spots.save(Spot(id: id, country: ["FR", "JP", "NO", "PT"][number % 4], rating: number % 50))
      }
    }
    #expect(try await found.count == 5)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored() && spots.isStored(1))
    #expect(try await spots.wrongStoredIndex() == nil)
    try await spots.close()
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json]) func aSecondCopyAfterASuspensionDropsNothing(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    let backend = try place.makeBackend()
    let spots = try await Self.open(backend)
    try await Self.fill(spots, 900)
    spots.core.indexBuilder.stored.copiedCount.store(1, ordering: .relaxed)
    let expected = try await spots.loadAll().filter { $0.country == "JP" }.sorted { ($0.rating, $0.id) < ($1.rating, $1.id) }.prefix(5)
    // The suspension comes between two of 900 parts. The query then builds its index in memory, from which it is copied.
    let query = Task { try await spots.fetch(Self.query) }
    while !Task.isCancelled, spots.core.indexBuilder.stored.copies.allSatisfy({ $0.end == nil }), !spots.isStored() { await Task.yield() }
    await spots.suspend()
    try await spots.resume()
    let found = try await query.value
    #expect(found == Array(expected))
    _ = try await spots.fetch(Query<Spot>().sorted(by: \.rating).limit(1))
    await spots.core.indexBuilder.stored.awaitCopies()
    for (position, id) in spots.core.state.collections[spots.collection].indexes.storedIDs(of: "spots") {
      #expect(spots.isStored(position) && (backend as? any PagingBackend)?.holdsIndex(id) == true)
    }
    try await spots.close()
  }

  @Test func aSnapshotReadsTheKeysOfItsCommit() async throws {
    let spots = try await Self.open(InMemoryBackend())
    try await Self.fill(spots)
    _ = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    let first = (spots.snapshot, try await spots.fetch(Self.query))
    try await spots.save(Spot(id: first.1[0].id, country: "JP", rating: 50))
    let second = (spots.snapshot, try await spots.fetch(Self.query))
    await spots.core.executor.run { [core = spots.core] in core.moveBase() }
    try await spots.delete(second.1[0].id)
    #expect(second.1 != first.1)
    #expect(try first.0.fetch(Self.query) == first.1)
    #expect(try second.0.fetch(Self.query) == second.1)
    #expect(try await spots.fetch(Self.query).first?.id != second.1[0].id)
    #expect(try await spots.wrongStoredIndex() == nil)
    try await spots.close()
  }

  @Test func anIndexThatTheBackendDropsIsNotRead() async throws {
    let backend = ScatteringBackend(InMemoryBackend(), seed: 1)
    let spots = try await Self.open(backend)
    try await Self.fill(spots, 500)
    _ = try await spots.fetch(Self.query)
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(spots.isStored())
    backend.dropsIndexes.store(true, ordering: .relaxed)
    try await spots.save(Spot(id: 3, country: "JP", rating: -5))
    #expect(!spots.isStored())
    #expect(try await spots.fetch(Self.query).first?.rating == -5)
    backend.dropsIndexes.store(false, ordering: .relaxed)
    try await spots.save(Spot(id: 6, country: "JP", rating: -6))
    await spots.core.indexBuilder.stored.awaitCopies()
    #expect(try await spots.fetch(Self.query).first?.rating == -6)
    try await spots.close()
  }
}
