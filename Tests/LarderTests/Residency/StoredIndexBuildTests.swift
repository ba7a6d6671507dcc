import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Builds of indexes from sorted keys, which hold neither all records nor all keys in memory.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 5))) struct StoredIndexBuildTests {
  struct Boat: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var name: String
    var berth: Int
  }

  private static let schema = RepositorySchema<Boat>(
    "boats", indexes: [.ordered(\.name), .ordered(.descending(\.berth)), .unique(\.berth, \.name)])
  private static let bare = RepositorySchema<Boat>("boats")
  private static let byName = Query<Boat>().sorted(by: \.name).limit(5)

  private static func open(
    _ backend: any StorageBackend, schema: RepositorySchema<Boat> = schema
  ) async throws -> LocalRepository<Boat> {
    let options = StoreOptions(checkpoint: .manual, residency: .onDisk(cache: .bytes(10_000)))
    return try await LocalRepository(backend: backend, schema: schema, options: options)
  }

  private static func boat(_ id: Int) -> Boat { Boat(id: id, name: "boat \(id * 7_919 % 10_007)", berth: id % 50) }

  /// Makes a closed store of boats without an index.
  private static func fill(_ backend: any StorageBackend, _ count: Int = 2_000) async throws {
    let boats = try await open(backend, schema: bare)
    try await boats.save(contentsOf: (0..<count).map(boat))
    try await boats.close()
  }

  /// Opens a store whose builds keep only some hundred bytes of keys in memory, and write some of them at once.
  private static func openNarrow(_ backend: any StorageBackend, bytes: Int = 500, count: Int = 100) async throws -> Store {
    let store = try await Store.open(backend, options: StoreOptions(checkpoint: .manual, residency: .onDisk(cache: .bytes(10_000))))
    store.core.indexBuilder.stored.sortedByteCount.store(bytes, ordering: .relaxed)
    store.core.indexBuilder.stored.copiedCount.store(count, ordering: .relaxed)
    return store
  }

  private static func areBuilt(_ boats: LocalRepository<Boat>, _ count: Int = 3) async -> Bool {
    await boats.core.indexBuilder.stored.awaitCopies()
    return (0..<count).allSatisfy { boats.isStored($0) }
  }

  private static func storeAsRemote(_ boats: [Boat], in store: Store) async throws {
    let position = try #require(store.core.state.names.firstIndex(of: "boats"))
    let values = try boats.map { (RecordKey("\($0.id)"), StoredValue(schemaVersion: 1, json: try JSONEncoder().encode($0))) }
    try await store.core.write(nil) { (pending) throws(RepositoryError) in
      pending.beginStored()
      for (key, value) in values { try pending.store(value, for: key, in: position) }
    }
  }

  @Test func aStreamHasTheKeysInOrder() throws {
    for seed in Seeds.list(Torture.count(60, full: 2_000), for: "sorted keys") {
      var random = SeededGenerator(seed)
      let scratch = random.chance(80) ? ScratchFile(MemoryFile()) : nil
      var sorter = KeySorter(limit: random.int(0..<(random.chance(30) ? 60_000 : 4_000)), scratch: scratch)
      var expected: Set<Data> = []
      for _ in 0..<random.int(0..<40) {
        var keys = UnsortedKeys()
        for _ in 0..<random.int(0..<30) {
          // Many keys begin with the same bytes, and some are as long as a key may be.
          let size = random.chance(10) ? IndexKey.limit - 5 : random.int(0..<30)
          let text = String(decoding: (0..<size).map { _ in random.chance(80) ? 0x61 : UInt8(random.int(0x21..<0x7F)) }, as: UTF8.self)
          let entry = IndexEntry(values: [IndexValue(text)], slot: RecordSlot(stubOf: RecordKey("\(random.int(10..<100))")))
          guard expected.insert(IndexKey.bytes(of: entry)).inserted else { continue }
          let isAppended = keys.append(entry)
          #expect(isAppended)
        }
        try sorter.add(keys)
      }
      let sorted = sorter.finish()
      // Each stream begins anew. The first one reads a long run in several parts.
      for readCount in [1, 4 << 20] {
        var stream = try sorted.stream(readCount: readCount)
        var found: [Data] = []
        while let key = stream.next {
          found.append(key)
          try stream.advance()
        }
        #expect(found == expected.sorted { $0.precedes($1) }, "seed \(seed)")
      }
    }
  }

  @Test func aLogOfChangesLosesNoneAndKeepsTheirOrder() {
    for seed in Seeds.list(Torture.count(20, full: 500), for: "logs of changes") {
      var random = SeededGenerator(seed)
      var (log, next, expected) = (ChangeLog(), 0, [Int]())
      func numbers(_ log: ChangeLog) -> [Int] {
        var numbers: [Int] = []
        log.forEach { change in
          numbers.append(Int(change.new?.key.text ?? "") ?? -1)
          return true
        }
        return numbers
      }
      for _ in 0..<20 {
        for _ in 0..<random.int(0..<700) {
          log.append(IndexChange(old: nil, new: RecordSlot(stubOf: RecordKey("\(next)"))))
          expected.append(next)
          next += 1
        }
        let copy = log
        let count = random.int(0..<900)
        let removed = numbers(log.removeFirst(count))
        #expect(removed.count >= min(count, expected.count) && removed == Array(expected.prefix(removed.count)), "seed \(seed)")
        #expect(numbers(copy) == expected && copy.count == expected.count, "seed \(seed)")
        expected.removeFirst(removed.count)
        #expect(numbers(log) == expected && log.isEmpty == expected.isEmpty, "seed \(seed)")
      }
    }
  }

  @Test func aLongerKeyIsRefused() {
    var keys = UnsortedKeys()
    let text = String(repeating: "a", count: IndexKey.limit)
    let isAppended = keys.append(IndexEntry(values: [IndexValue(text)], slot: RecordSlot(stubOf: RecordKey("1"))))
    #expect(!isAppended)
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json]) func aShortSessionLeavesTheIndexInTheStorage(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await Self.fill(try place.makeBackend())
    var boats = try await Self.open(try place.makeBackend())
    let first = try await boats.fetch(Self.byName)
    #expect(boats.isStored(0))
    try await boats.close()
    let counting = FaultInjectingBackend(try place.makeBackend())
    boats = try await Self.open(counting)
    #expect(boats.isStored(0) && boats.isStored(2))
    let before = counting.calls(.read)
    #expect(try await boats.fetch(Self.byName) == first)
    #expect(counting.calls(.read) - before < 20)
    try await boats.close()
  }

  @Test func onePassBuildsAllIndexes() async throws {
    let backend = InMemoryBackend()
    try await Self.fill(backend)
    let counting = FaultInjectingBackend(backend)
    let ordered = RepositorySchema<Boat>("boats", indexes: [.ordered(\.name), .ordered(\.berth), .fullText(\.name)])
    let boats = try await Self.open(counting, schema: ordered)
    #expect(!boats.isStored(0) && !boats.isStored(1))
    let first = counting.calls(.read)
    _ = try await boats.loadAll()
    let walk = counting.calls(.read) - first
    _ = try await boats.fetch(Self.byName)
    #expect(await Self.areBuilt(boats, 2))
    // A walk over all records reads two blocks, and a second pass would read two more.
    #expect(walk > 1 && counting.calls(.read) - first - 2 * walk < 20)
    // The index of words is in memory, and no query has needed it.
    #expect(!boats.core.state.collections[boats.collection].indexes.isBuilt(2))
    let before = counting.calls(.read)
    _ = try await boats.fetch(Query<Boat>().sorted(by: \.berth).limit(5))
    #expect(counting.calls(.read) - before < 20)
    #expect(try await boats.wrongStoredIndex() == nil)
    try await boats.close()
  }

  @Test func theKeysAreInTheScratchFile() async throws {
    let inner = InMemoryBackend()
    try await Self.fill(inner)
    let (backend, scratch) = (ScatteringBackend(inner, seed: 1), MemoryFile())
    backend.scratchFile.withLock { $0 = scratch }
    let store = try await Self.openNarrow(backend)
    let boats = try await store.repository(Self.schema)
    #expect(await Self.areBuilt(boats))
    #expect(try await boats.wrongStoredIndex() == nil)
    // Each of the 6,000 keys has some 15 to 30 bytes, of which only those of the last block are in memory.
    #expect(try scratch.size() > 90_000)
    try await store.close()
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json]) func aNarrowBuildLeavesNoFile(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await Self.fill(try place.makeBackend())
    let store = try await Self.openNarrow(try place.makeBackend())
    let boats = try await store.repository(Self.schema)
    #expect(await Self.areBuilt(boats))
    #expect(try await boats.wrongStoredIndex() == nil)
    #expect(
      try await boats.fetch(Self.byName) == (0..<2_000).map(Self.boat).sorted { ($0.name, $0.id) < ($1.name, $1.id) }.prefix(5).map { $0 })
    if let file = place.file {
      let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
      #expect(!names.contains { $0.contains("keys") })
    }
    try await store.close()
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json]) func commitsBesideANarrowBuildAreInTheIndex(_ kind: TestBackend) async throws {
    for seed in Seeds.list(Torture.count(2, full: 200), for: "commits beside a narrow build, \(kind)") {
      var random = SeededGenerator(seed)
      let place = try kind.factory.makePlace()
      defer { place.remove() }
      try await Self.fill(try place.makeBackend(), 800)
      var backend = try place.makeBackend()
      if random.chance(50), let inner = backend as? any PagingBackend {
        // The storage drops the index up to three times, and the commits so far must be in the index that begins anew.
        let scattering = ScatteringBackend(inner, seed: seed)
        scattering.refusalLimit.store(9, ordering: .relaxed)
        backend = scattering
      }
      let store = try await Self.openNarrow(backend, bytes: random.int(0..<3_000), count: random.int(1..<40))
      let ordered = RepositorySchema<Boat>("boats", indexes: [.ordered(\.name), .ordered(.descending(\.berth))])
      let boats = try await store.repository(ordered)
      var model = Dictionary(uniqueKeysWithValues: (0..<800).map { ($0, Self.boat($0)) })
      async let found = boats.fetch(Self.byName)
      for _ in 0..<random.int(50..<200) {
        let id = random.int(0..<900)
        if random.chance(25) {
          try await boats.delete(id)
          model[id] = nil
        } else if random.chance(10) {
          let batch = (id..<id + 30).map { Boat(id: $0, name: "batch \(random.int(0..<1_000))", berth: random.int(0..<50)) }
          try await boats.save(contentsOf: batch)
          for boat in batch { model[boat.id] = boat }
        } else {
          let boat = Boat(id: id, name: "other \(random.int(0..<1_000))", berth: random.int(0..<50))
          try await boats.save(boat)
          model[id] = boat
        }
      }
      #expect(try await found.count == 5)
      #expect(await Self.areBuilt(boats, 2), "seed \(seed)")
      #expect(try await boats.wrongStoredIndex() == nil, "seed \(seed)")
      let expected = model.values.sorted { ($0.name, $0.id) < ($1.name, $1.id) }
      #expect(try await boats.fetch(Query().sorted(by: \.name)) == expected, "seed \(seed)")
      try await store.close()
    }
  }

  /// The last key is removed during the pass, and added again by the first commit after the transaction with the keys.
  @Test func aLastKeyThatComesAndGoesIsInTheIndex() async throws {
    let inner = InMemoryBackend()
    try await Self.fill(inner, 10)
    let held = FaultInjectingBackend(inner)
    let backend = ScatteringBackend(held, seed: 1)
    let store = try await Self.openNarrow(backend)
    let boats = try await store.repository(RepositorySchema<Boat>("boats", indexes: [.ordered(\.name)]))
    try await boats.save(Boat(id: 5, name: "zz", berth: 1))
    held.hold(.read)
    async let found = boats.fetch(Self.byName)
    await held.waitUntilHeld(.read)
    try await boats.save(Boat(id: 5, name: "first", berth: 1))
    let saves = Mutex<[Task<Void, any Error>]>([])
    backend.afterExtension.withLock {
      $0 = { [core = store.core] in
        guard saves.withLock({ $0.isEmpty }) else { return }
        let save = Task { _ = try await boats.save(Boat(id: 5, name: "zz", berth: 2)) }
        saves.withLock { $0.append(save) }
        // The executor runs the save before the next step of the build.
        while core.commits.count == 0 { sched_yield() }
      }
    }
    held.release(.read)
    #expect(try await found.count == 5)
    for save in saves.withLock({ $0 }) { try await save.value }
    #expect(await Self.areBuilt(boats, 1))
    #expect(try await boats.wrongStoredIndex() == nil)
    #expect(try await boats.fetch(Query().sorted(by: \.name)).last?.id == 5)
    try await store.close()
  }

  @Test func changesDuringThePassAreInTheIndex() async throws {
    let backend = InMemoryBackend()
    try await Self.fill(backend)
    let held = FaultInjectingBackend(backend)
    let store = try await Self.openNarrow(held)
    let boats = try await store.repository(RepositorySchema<Boat>("boats", indexes: [.ordered(\.name)]))
    // From now on, these boats are in memory, so that their changes need no read.
    try await boats.save(contentsOf: (0..<10).map(Self.boat))
    held.hold(.read)
    async let found = boats.fetch(Self.byName)
    await held.waitUntilHeld(.read)
    try await boats.save(Boat(id: 0, name: "a", berth: 1))
    try await boats.save(Boat(id: 1, name: "b", berth: 1))
    try await boats.save(Boat(id: 1, name: "z", berth: 1))
    try await boats.save(Boat(id: 2, name: "aa", berth: 1))
    held.release(.read)
    #expect(try await found.prefix(3).map(\.id) == [0, 2, Self.firstId])
    #expect(await Self.areBuilt(boats, 1))
    #expect(try await boats.wrongStoredIndex() == nil)
    try await store.close()
  }

  /// Id of the boat that comes first in the order of names.
  private static let firstId = (3..<2_000).map(boat).min { ($0.name, $0.id) < ($1.name, $1.id) }?.id ?? 0

  @Test func aDuplicateOfAnotherDeviceDuringThePassIsFound() async throws {
    let backend = InMemoryBackend()
    try await Self.fill(backend)
    let held = FaultInjectingBackend(backend)
    let store = try await Self.openNarrow(held)
    try await Self.storeAsRemote([Self.boat(0)], in: store)
    held.hold(.read)
    let opening = Task { try await store.repository(Self.schema) }
    await held.waitUntilHeld(.read)
    // The reads before the pass are those of the schema's check.
    while !Task.isCancelled,
      !store.core.state.collections.contains(where: { $0.indexes.bodies.contains { if case .building = $0 { true } else { false } } })
    {
      held.step(.read)
      await Task.yield()
    }
    var double = Self.boat(51)
    double = Boat(id: 0, name: double.name, berth: double.berth)
    try await Self.storeAsRemote([double], in: store)
    held.release(.read)
    let boats = try await opening.value
    _ = await Self.areBuilt(boats)
    #expect(!boats.isStored(2) && boats.isStored(0))
    #expect(boats.openReport.duplicates.map(\.second.text) == ["51"])
    let refused = await #expect(throws: RepositoryError.self) {
      try await boats.save(Boat(id: 7_000, name: double.name, berth: double.berth))
    }
    #expect(refused?.code == .uniqueViolation)
    try await store.close()
  }

  @Test func aBuildBeginsAnewWhenTheStorageDropsIt() async throws {
    let inner = InMemoryBackend()
    try await Self.fill(inner)
    let backend = ScatteringBackend(inner, seed: 1)
    backend.refusalLimit.store(9, ordering: .relaxed)
    let store = try await Self.openNarrow(backend, count: 300)
    let boats = try await store.repository(Self.schema)
    #expect(await Self.areBuilt(boats))
    #expect(try await boats.wrongStoredIndex() == nil)
    // Nine calls lost the index three times, and each of the three indexes has 2,000 keys.
    #expect(backend.extensionCount.load(ordering: .relaxed) == 9 + 3 * 7)
    try await store.close()
  }

  @Test(arguments: [(1_000, nil), (Int.max, 3_000), (Int.max, 20_011)] as [(Int, Int?)])
  func aBadScratchFileCostsOnlyMemory(_ limit: Int, _ flipped: Int?) async throws {
    let inner = InMemoryBackend()
    try await Self.fill(inner)
    let backend = ScatteringBackend(inner, seed: 1)
    backend.scratchFile.withLock { $0 = MemoryFile(limit: limit, flipped: flipped) }
    let store = try await Self.openNarrow(backend)
    let boats = try await store.repository(RepositorySchema<Boat>("boats", indexes: [.ordered(\.name)]))
    let first = try await boats.fetch(Self.byName)
    #expect(first == (0..<2_000).map(Self.boat).sorted { ($0.name, $0.id) < ($1.name, $1.id) }.prefix(5).map { $0 })
    // The index in memory is copied.
    #expect(await Self.areBuilt(boats, 1))
    #expect(try await boats.wrongStoredIndex() == nil)
    try await store.close()
  }

  @Test func aFullDiskCostsOnlyMemory() async throws {
    let inner = InMemoryBackend()
    try await Self.fill(inner)
    let backend = ScatteringBackend(inner, seed: 1)
    backend.isFull.store(true, ordering: .relaxed)
    let boats = try await Self.open(backend)
    #expect(boats.openReport.duplicates.isEmpty)
    #expect(try await boats.fetch(Self.byName).count == 5)
    #expect(await !Self.areBuilt(boats, 1))
    let refused = await #expect(throws: RepositoryError.self) {
      try await boats.save(Boat(id: 7_000, name: Self.boat(1).name, berth: Self.boat(1).berth))
    }
    #expect(refused?.code == .uniqueViolation)
    try await boats.close()
  }

  @Test(arguments: [false, true]) func anEndDuringTheWritingLosesNothing(_ closes: Bool) async throws {
    let backend = InMemoryBackend()
    try await Self.fill(backend)
    var store: Store? = try await Self.openNarrow(backend, count: 1)
    let core = try #require(store?.core)
    let boats = try await #require(store).repository(RepositorySchema<Boat>("boats", indexes: [.ordered(\.name), .ordered(\.berth)]))
    let query = Task { try await boats.fetch(Self.byName) }
    while !Task.isCancelled, core.indexBuilder.stored.copies.allSatisfy({ $0.end == nil }), !boats.isStored(0) { await Task.yield() }
    if closes {
      try await store?.close()
      let result = await query.result
      // The query may have ended before.
      if case .failure(let error) = result { #expect((error as? RepositoryError)?.code == .closed) }
    } else {
      #expect(try await query.value.count == 5)
      // No query waits for the second index, which is being written now.
      try await store?.close()
    }
    store = nil
    let again = try await Self.open(backend, schema: Self.schema)
    _ = try await again.fetch(Self.byName)
    #expect(await Self.areBuilt(again))
    #expect(try await again.wrongStoredIndex() == nil)
    try await again.close()
  }
}
