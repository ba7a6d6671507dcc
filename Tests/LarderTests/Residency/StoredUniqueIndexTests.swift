import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Unique indexes whose keys stay in the storage: no write makes two records equal, and no opening reads all records.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 5))) struct StoredUniqueIndexTests {
  struct Card: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var code: String?
    var row: Int
    var seat: Int

    init(_ id: Int, code: String?, row: Int = 0, seat: Int? = nil) {
      (self.id, self.code, self.row, self.seat) = (id, code, row, seat ?? id)
    }

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      (id, row) = (try values.decode(Int.self, forKey: .id), try values.decode(Int.self, forKey: .row))
      seat = try values.decode(Int.self, forKey: .seat)
      code = try values.decodeIfPresent(String.self, forKey: .code)
      if code == "broken" { throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "broken")) }
    }
  }

  private static let schema = RepositorySchema<Card>(
    "cards", indexes: [.unique(\.code), .unique(\.row, \.seat), .ordered(\.seat)])
  private static let bare = RepositorySchema<Card>("cards")
  private static let options = StoreOptions(durability: .buffered, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)))

  private static func open(
    _ backend: any StorageBackend, _ residency: Residency = .onDisk(cache: .bytes(10_000)), schema: RepositorySchema<Card> = schema
  ) async throws -> LocalRepository<Card> {
    let options = StoreOptions(durability: .buffered, checkpoint: .manual, residency: residency)
    let cards = try await LocalRepository(backend: backend, schema: schema, options: options)
    await cards.core.indexBuilder.stored.awaitCopies()
    return cards
  }

  private static func filled(_ backend: any StorageBackend, _ count: Int = 3_000) async throws -> LocalRepository<Card> {
    let cards = try await open(backend)
    try await cards.save(contentsOf: (0..<count).map { Card($0, code: $0.isMultiple(of: 10) ? nil : "code \($0)", row: $0 % 7) })
    return cards
  }

  private static func storeAsRemote(_ cards: [Card], in repository: LocalRepository<Card>) async throws {
    try await storeAsRemote(cards, in: repository.core, repository.collection)
  }

  private static func storeAsRemote(_ cards: [Card], in core: StoreCore, _ collection: Int) async throws {
    let values = try cards.map { (RecordKey("\($0.id)"), StoredValue(schemaVersion: 1, json: try JSONEncoder().encode($0))) }
    try await core.write(nil) { (pending) throws(RepositoryError) in
      pending.beginStored()
      for (key, value) in values { try pending.store(value, for: key, in: collection) }
    }
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json])
  func anOpeningReadsNoRecordAndTheIndexRefusesDuplicates(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    var cards = try await Self.filled(try place.makeBackend())
    #expect(cards.isStored() && cards.isStored(1))
    try await cards.close()

    let counting = FaultInjectingBackend(try place.makeBackend())
    cards = try await Self.open(counting)
    #expect(cards.isStored() && cards.isStored(1) && cards.openReport.duplicates.isEmpty)
    // The first record shows that the type fits the collection.
    #expect(counting.calls(.read) <= 2)
    for card in [Card(9_000, code: "code 1"), Card(9_000, code: "new", row: 3, seat: 3), Card(2, code: "code 1", row: 2)] {
      let error = await #expect(throws: RepositoryError.self) { try await cards.save(card) }
      #expect(error?.code == .uniqueViolation)
    }
    // The values that the record has, `nil`, and values that two records exchange are no duplicates.
    try await cards.save(Card(1, code: "code 1", row: 1))
    try await cards.save(contentsOf: [Card(9_001, code: nil), Card(9_002, code: nil)])
    try await cards.save(contentsOf: [Card(1, code: "code 2", row: 1), Card(2, code: "code 1", row: 2)])
    let swapped = try await cards.first(Query().where(\.code, .equal, "code 2"))
    #expect(swapped?.id == 1)
    try await cards.delete(3)
    await cards.core.executor.run { [core = cards.core] in core.moveBase() }
    try await cards.save(Card(9_003, code: "code 3", row: 3, seat: 3))
    let twice = await #expect(throws: RepositoryError.self) { try await cards.save(Card(3, code: "code 3")) }
    #expect(twice?.code == .uniqueViolation)
    #expect(cards.isStored() && cards.isStored(1))
    #expect(try await cards.wrongStoredIndex() == nil)
    try await cards.close()
  }

  @Test(arguments: [TestBackend.memory, .sqlite, .json])
  func duplicatesOfAnotherDeviceTakeTheIndexOutOfTheStorage(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    var cards = try await Self.filled(try place.makeBackend(), 100)
    // A write without duplicates leaves the index where it is.
    try await Self.storeAsRemote([Card(200, code: "other"), Card(1, code: "code 1", row: 1)], in: cards)
    #expect(cards.isStored() && cards.isStored(1))
    try await Self.storeAsRemote([Card(201, code: "code 2"), Card(202, code: "code 2")], in: cards)
    #expect(!cards.isStored() && cards.isStored(1))
    let refused = await #expect(throws: RepositoryError.self) { try await cards.save(Card(203, code: "code 2")) }
    #expect(refused?.code == .uniqueViolation)
    for _ in 0..<2 {
      try await cards.close()
      cards = try await Self.open(try place.makeBackend())
      #expect(cards.openReport.duplicates.map(\.second.text) == ["201", "202"])
      #expect(!cards.isStored() && cards.isStored(1))
    }
    for id in [201, 202] { try await cards.delete(id) }
    try await cards.close()
    for _ in 0..<2 {
      cards = try await Self.open(try place.makeBackend())
      #expect(cards.openReport.duplicates.isEmpty && cards.isStored())
      try await cards.close()
    }
  }

  @Test func aCopyEndsBesideADuplicateOfAnotherDevice() async throws {
    let backend = InMemoryBackend()
    let bare = try await Self.open(backend, schema: Self.bare)
    try await bare.save(contentsOf: (0..<1_000).map { Card($0, code: "code \($0 + 1_000)") })
    try await bare.close()
    let store = try await Store.open(backend, options: Self.options)
    let position = try #require(store.core.state.names.firstIndex(of: "cards"))
    // Each part of the index has one key, so that the write comes between two of 1,000 parts.
    store.core.indexBuilder.stored.copiedCount.store(1, ordering: .relaxed)
    let opening = Task { try await store.repository(Self.schema) }
    // The storage has the key of the record with the same code, and that of the new record would come before later ones.
    let later = IndexKey.bytes([IndexValue("code 1005")], IndexEntry.Order())
    while !Task.isCancelled, store.core.indexBuilder.stored.copies.allSatisfy({ $0.end?.precedes(later) ?? true }),
      store.core.state.collections[position].indexes.enforcedIndexes.isEmpty
    { await Task.yield() }
    try await Self.storeAsRemote([Card(5_000, code: "code 1000")], in: store.core, position)
    let cards = try await opening.value
    #expect(!cards.isStored())
    await cards.core.indexBuilder.stored.awaitCopies()
    #expect(!cards.isStored())
    try await store.close()
    let reopened = try await Self.open(backend)
    #expect(reopened.openReport.duplicates.map(\.second.text) == ["5000"])
    try await reopened.close()
  }

  @Test func duplicatesFromBeforeStayInMemory() async throws {
    let backend = ScatteringBackend(InMemoryBackend(), seed: 1)
    let bare = try await Self.open(backend, schema: Self.bare)
    try await bare.save(contentsOf: (0..<50).map { Card($0, code: "code \($0 == 33 ? 32 : $0)") })
    try await bare.close()
    let cards = try await Self.open(backend)
    #expect(!cards.isStored() && cards.isStored(1))
    #expect(cards.openReport.duplicates.count == 1)
    // Only the keys of the other two indexes were written, each in one part.
    #expect(backend.extensionCount.load(ordering: .relaxed) == 2)
    try await cards.close()
  }

  /// A crash leaves the index behind commits of a process that does not declare it.
  @Test func whatAnIndexCatchesUpWithMayHaveDuplicates() async throws {
    let files = SimulatedFileSystem()
    func backend() -> JSONFileBackend { PagedJSONStore.backend(files) }
    var cards = try await Self.filled(backend(), 100)
    try await cards.checkpoint()
    try await cards.close()
    for (id, code) in [(200, "own"), (201, "code 3")] {
      let bare = try await Self.open(backend(), .full, schema: Self.bare)
      try await bare.save(Card(id, code: code, row: 3, seat: id == 201 ? 3 : id))
      try await bare.flush()
      await bare.core.abandon()
      // No crash makes the store forget that it has found duplicates.
      for time in 0..<3 {
        cards = try await Self.open(backend())
        #expect(cards.openReport.duplicates.map(\.second.text) == (id == 200 ? [] : ["201", "201"]), "opening \(time)")
        #expect(cards.isStored() == (id == 200) && cards.isStored(1) == (id == 200))
        if time == 1 { try await cards.flush() }
        await cards.core.abandon()
      }
    }
  }

  @Test func anIndexThatIsLostOrUnfitIsBuiltByTheNextWrite() async throws {
    let backend = ScatteringBackend(InMemoryBackend(), seed: 1)
    let cards = try await Self.filled(backend, 300)
    #expect(cards.isStored())
    backend.dropsIndexes.store(true, ordering: .relaxed)
    try await cards.save(Card(400, code: "another"))
    #expect(!cards.isStored())
    backend.dropsIndexes.store(false, ordering: .relaxed)
    let lost = await #expect(throws: RepositoryError.self) { try await cards.save(Card(401, code: "another")) }
    #expect(lost?.code == .uniqueViolation)
    try await cards.save(Card(402, code: "third"))
    await cards.core.indexBuilder.stored.awaitCopies()
    #expect(cards.isStored())
    // A key of this text is too long for the storage.
    let long = String(repeating: "é", count: 1_200)
    try await cards.save(Card(403, code: long))
    #expect(!cards.isStored())
    let twice = await #expect(throws: RepositoryError.self) { try await cards.save(Card(404, code: long)) }
    #expect(twice?.code == .uniqueViolation)
    try await cards.save(Card(403, code: "short"))
    try await cards.close()
  }

  @Test func aRefusedWriteKeepsTheIndexThatItHasBuilt() async throws {
    let scattering = ScatteringBackend(InMemoryBackend(), seed: 1)
    let backend = FaultInjectingBackend(scattering)
    let cards = try await Self.filled(backend, 8_000)
    scattering.dropsIndexes.store(true, ordering: .relaxed)
    try await cards.save(Card(4_000, code: "another"))
    #expect(!cards.isStored())
    var reads: [Int] = []
    for _ in 0..<3 {
      let before = backend.calls(.read)
      let error = await #expect(throws: RepositoryError.self) { try await cards.save(Card(4_001, code: "another")) }
      #expect(error?.code == .uniqueViolation)
      reads.append(backend.calls(.read) - before)
      await cards.core.indexBuilder.stored.awaitCopies()
    }
    // The first write reads all records in blocks.
    #expect(reads[0] > reads[1] + 4 && reads[0] > reads[2] + 4, "\(reads)")
    try await cards.close()
  }

  @Test func aKeyWithoutItsRecordStopsNoWrite() async throws {
    let backend = InMemoryBackend()
    var cards = try await Self.filled(backend, 100)
    let run = try #require(cards.core.state.collections[cards.collection].indexes.storedEntries(0)).run
    let ids = cards.core.state.collections[cards.collection].indexes.storedIDs(of: "cards").map(\.id)
    let ghost = IndexEntry(values: [IndexValue("ghost")], slot: RecordSlot(stubOf: RecordKey("777")), order: run.order)
    let commit = Revision(cards.core.state.commit + 1)
    try await cards.close()
    _ = try backend.open(Self.options) { _ in }
    let record = StoredRecord(
      collection: "cards", key: RecordKey("5"), revision: commit, schemaVersion: 1,
      value: try JSONEncoder().encode(Card(5, code: "code 5", row: 5)))
    let edit = IndexEdit(index: run.id, removed: nil, added: IndexKey.bytes(of: ghost))
    try backend.commit(
      WriteBatch(
        records: [record], commits: commit.number...commit.number, durability: .buffered, indexEdits: [edit], indexes: Set(ids),
        recordCounts: ["cards": 100]))
    try backend.close()
    cards = try await Self.open(backend)
    #expect(cards.isStored())
    try await cards.save(Card(500, code: "ghost"))
    let error = await #expect(throws: RepositoryError.self) { try await cards.save(Card(501, code: "ghost")) }
    #expect(error?.code == .uniqueViolation)
    let report = await cards.core.verify()
    #expect(report.damagedIndexes.map(\.code) == [.corrupted])
    try await cards.close()
  }

  @Test func aBuildThatADamagedRecordStopsIsNotRepeated() async throws {
    let files = SimulatedFileSystem()
    var cards = try await Self.filled(PagedJSONStore.backend(files), 2_000)
    try await cards.checkpoint()
    try await cards.close()
    // The last record is damaged, so that a build reads nearly all of the document.
    let document = try #require(files.contents(of: PagedJSONStore.file.path))
    let position = try #require(document.lastRange(of: Data("code 999".utf8))).lowerBound
    let file = try #require(try files.open(PagedJSONStore.file.path, writable: true))
    try Data("x".utf8).withUnsafeBytes { try file.write($0, at: position) }
    let reads = ReadCounting(files)
    cards = try await Self.open(PagedJSONStore.backend(reads))
    #expect(cards.isStored())
    let ids = cards.core.state.collections[cards.collection].indexes.storedIDs(of: "cards").map(\.id)
    await cards.core.executor.run { [core = cards.core] in
      for id in ids { do throws(RepositoryError) { try (core.backend as? any PagingBackend)?.dropIndex(id) } catch {} }
      core.dropLostIndexes()
    }
    var bytes: [Int] = []
    for id in 0..<3 {
      let before = reads.documentBytes
      try await cards.delete(id)
      bytes.append(reads.documentBytes - before)
    }
    #expect(bytes[0] > document.count / 2 && bytes[1] < document.count / 4 && bytes[2] < document.count / 4, "\(bytes)")
    try await cards.close()
  }

  /// A word of which a later version of the app reads another form.
  struct Word: Codable, Identifiable, Sendable {
    let id: Int
    var text: String
    static let ending = Mutex("")

    init(_ id: Int, _ text: String) { (self.id, self.text) = (id, text) }

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      id = try values.decode(Int.self, forKey: .id)
      text = try values.decode(String.self, forKey: .text) + Self.ending.withLock { $0 }
    }
  }

  @Test func anIndexOfOtherValuesRefusesNoWrite() async throws {
    let backend = InMemoryBackend()
    func open() async throws -> LocalRepository<Word> {
      try await LocalRepository(
        backend: backend, schema: RepositorySchema("words", indexes: [.unique(\.text)]),
        options: Self.options)
    }
    var words = try await open()
    await words.core.indexBuilder.stored.awaitCopies()
    try await words.save(contentsOf: [Word(1, "tide"), Word(2, "pier")])
    #expect(words.isStored())
    try await words.close()
    Word.ending.withLock { $0 = "e" }
    defer { Word.ending.withLock { $0 = "" } }
    words = try await open()
    #expect(words.isStored())
    // The record 3 is read as "tide". The index has this text for the record 1, which is now read as "tidee".
    try await words.save(Word(3, "tid"))
    let twice = await #expect(throws: RepositoryError.self) { try await words.save(Word(4, "tid")) }
    #expect(twice?.code == .uniqueViolation)
    let report = await words.core.verify()
    #expect(report.isSound && report.damagedIndexes.map(\.code) == [.corrupted])
    try await words.close()
  }

  /// A text whose index value is read by a hook, which stands for a query on another thread.
  struct Code: Codable, Sendable, Equatable, IndexableValue {
    var text: String
    static let hook = Mutex<StoredRun?>(nil)
    var indexValue: IndexValue {
      Self.hook.withLock { $0.map { $0.refute($0.damaged) } }
      return IndexValue(text)
    }
  }

  struct Ticket: Codable, Identifiable, Sendable {
    let id: Int
    var code: Code
  }

  @Test func aQueryThatRefutesTheIndexDuringAWriteLetsNoDuplicatePass() async throws {
    for isRemote in [false, true] {
      let backend = InMemoryBackend()
      func open() async throws -> LocalRepository<Ticket> {
        let tickets = try await LocalRepository(
          backend: backend, schema: RepositorySchema<Ticket>("tickets", indexes: [.unique(\.code)]), options: Self.options)
        await tickets.core.indexBuilder.stored.awaitCopies()
        return tickets
      }
      var tickets = try await open()
      try await tickets.save(contentsOf: (0..<50).map { Ticket(id: $0, code: Code(text: "code \($0)")) })
      await tickets.core.executor.run { [core = tickets.core] in core.moveBase(isForced: true) }
      let run = try #require(tickets.core.state.collections[tickets.collection].indexes.storedEntries(0)).run
      // The index is refuted when the record of a found key is compared.
      Code.hook.withLock { $0 = run }
      defer { Code.hook.withLock { $0 = nil } }
      let second = Ticket(id: 60, code: Code(text: "code 7"))
      if isRemote {
        let (json, collection) = (try JSONEncoder().encode(second), tickets.collection)
        try await tickets.core.write(nil) { (pending) throws(RepositoryError) in
          pending.beginStored()
          try pending.store(StoredValue(schemaVersion: 1, json: json), for: RecordKey("60"), in: collection)
        }
      } else {
        let error = await #expect(throws: RepositoryError.self) { try await tickets.save(second) }
        #expect(error?.code == .uniqueViolation)
      }
      Code.hook.withLock { $0 = nil }
      try await tickets.close()
      tickets = try await open()
      #expect(tickets.openReport.duplicates.count == (isRemote ? 1 : 0))
      try await tickets.close()
    }
  }

  @Test func aDamagedKeyStopsNoWriteAndLetsNoDuplicatePass() async throws {
    let files = SimulatedFileSystem()
    let cards = try await Self.filled(PagedJSONStore.backend(files), 300)
    try await cards.checkpoint()
    #expect(cards.isStored())
    // Each block of keys has a flipped bit.
    var index = try #require(files.contents(of: PagedJSONStore.index))
    for position in stride(from: 0, to: index.count, by: 64) { index[position] ^= 0x20 }
    let file = try #require(try files.open(PagedJSONStore.index, writable: true))
    try index.withUnsafeBytes { try file.write($0, at: 0) }
    let twice = await #expect(throws: RepositoryError.self) { try await cards.save(Card(400, code: "code 21")) }
    #expect(twice?.code == .uniqueViolation)
    #expect(cards.core.indexBuilder.stored.damage.map(\.code) == [.corrupted])
    try await cards.save(Card(401, code: "new"))
    await cards.core.indexBuilder.stored.awaitCopies()
    #expect(cards.isStored())
    let indexes = cards.core.state.collections[cards.collection].indexes
    #expect(indexes.storedEntries(0)?.run.refutation == nil)
    try await cards.close()
  }

  // MARK: Histories

  @Test(arguments: [TestBackend.memory, .json, .sqlite])
  func theSameWritesAreRefusedAsInMemory(_ kind: TestBackend) async throws {
    var (stored, steps, refused) = (0, 0, 0)
    for seed in Seeds.list(Torture.count(kind == .memory ? 30 : 8, full: 300), for: "unique indexes on \(kind)") {
      let places = [try kind.factory.makePlace(), try kind.factory.makePlace()]
      defer { for place in places { place.remove() } }
      var random = SeededGenerator(seed)
      let backends = try places.map { try $0.makeBackend() }
      let scattering = kind == .memory ? ScatteringBackend(InMemoryBackend(), seed: seed) : nil
      var pair = Pair(backends: [backends[0], scattering ?? backends[1]])
      try await pair.open()
      for step in 0..<80 {
        scattering?.dropsIndexes.store(random.chance(5), ordering: .relaxed)
        try await Self.step(&pair, &random, "step \(step), replay with LARDER_SEED=\(seed)")
        if random.chance(50) { await pair.cards[1].core.indexBuilder.stored.awaitCopies() }
        (stored, steps) = (stored + (pair.cards[1].isStored() ? 1 : 0), steps + 1)
        if step.isMultiple(of: 9) { #expect(try await pair.cards[1].wrongStoredIndex() == nil, "step \(step), seed \(seed)") }
      }
      for cards in pair.cards { try await cards.close() }
      refused += pair.refusedCount
    }
    print("figures: the index was in the storage after \(stored) steps of \(steps), and \(refused) writes were refused")
    #expect(stored > steps / 5 && refused > steps / 50)
  }

  /// Two stores, of which the second one leaves its records in the storage.
  private struct Pair {
    let backends: [any StorageBackend]
    var cards: [LocalRepository<Card>] = []
    /// Number of writes that both stores have refused because of a unique index.
    private(set) var refusedCount = 0

    init(backends: [any StorageBackend]) { self.backends = backends }

    mutating func open() async throws {
      cards = []
      for (backend, residency) in zip(backends, [.full, .onDisk(cache: .bytes(2_000))] as [Residency]) {
        cards.append(
          try await LocalRepository(
            backend: backend, schema: StoredUniqueIndexTests.schema,
            options: StoreOptions(durability: .buffered, checkpoint: .manual, residency: residency)))
      }
      #expect(Set(cards[0].openReport.duplicates) == Set(cards[1].openReport.duplicates))
    }

    mutating func both(_ hint: Comment, _ body: (LocalRepository<Card>) async throws -> Void) async throws {
      try await both(hint) { cards in
        try await body(cards)
        return true
      }
    }

    /// Does the same in both stores, and compares the outcomes.
    mutating func both<Output: Equatable>(
      _ hint: Comment, _ body: (LocalRepository<Card>) async throws -> Output
    ) async throws {
      var outcomes: [Result<Output, RepositoryError>] = []
      for cards in cards {
        do { outcomes.append(.success(try await body(cards))) } catch let error as RepositoryError { outcomes.append(.failure(error)) }
      }
      switch (outcomes[0], outcomes[1]) {
      case (.success(let first), .success(let second)): #expect(first == second, hint)
      case (.failure(let first), .failure(let second)):
        #expect(first.code == second.code, hint)
        if first.code == .uniqueViolation { refusedCount += 1 }
      default: Issue.record("\(outcomes), \(hint)")
      }
    }
  }

  private static func step(_ pair: inout Pair, _ random: inout SeededGenerator, _ hint: Comment) async throws {
    func card() -> Card {
      let code = ["a", "e\u{301}", "é", "", "b", "c", "d"].randomElement(using: &random) ?? ""
      // The index of the first text stays in memory, because the key is too long. The second one does not decode.
      let odd = random.chance(50) ? String(repeating: "é", count: 1_200) : "broken"
      let text = random.chance(2) ? odd : code + (random.chance(70) ? "\(random.int(0..<9))" : "")
      return Card(random.int(0..<30), code: random.chance(20) ? nil : text, row: random.int(0..<5), seat: random.int(0..<12))
    }
    let (one, two, id, seat) = (card(), card(), random.int(0..<30), random.int(0..<12))
    let many = (0..<random.int(0..<5)).map { _ in card() }
    switch random.int(0..<16) {
    case 0...3: try await pair.both(hint) { _ = try await $0.save(one) }
    case 4: try await pair.both(hint) { _ = try await $0.save(contentsOf: many) }
    case 5, 6: try await pair.both(hint) { _ = try await $0.delete(id) }
    case 7:
      // Two records exchange their codes, and a write that throws inside is given up alone.
      try await pair.both(hint) { cards in
        try await cards.transaction { transaction in
          let (left, right) = (try transaction.find(by: one.id, in: cards), try transaction.find(by: two.id, in: cards))
          guard var left, var right else { return 0 }
          (left.code, right.code) = (right.code, left.code)
          try transaction.save(left, in: cards)
          try transaction.save(right, in: cards)
          return 1
        }
      }
    case 8: try await pair.both(hint) { _ = try await $0.replaceAll(with: many, discardingUndecodable: true) }
    case 9: if random.chance(40) { try await pair.both(hint) { try await storeAsRemote([one, two], in: $0) } }
    case 10:
      try await pair.both(hint) { cards in
        try await cards.update(id) { $0.code = one.code }
      }
    case 11: for cards in pair.cards { try await cards.checkpoint() }
    case 12:
      for cards in pair.cards { try await cards.close() }
      try await pair.open()
    case 13: await pair.cards[1].core.executor.run { [core = pair.cards[1].core] in core.moveBase(isForced: true) }
    case 14:
      for cards in pair.cards {
        await cards.suspend()
        try await cards.resume()
      }
    default: _ = await pair.cards[1].core.verify()
    }
    try await pair.both(hint) { try await $0.loadAll() }
    try await pair.both(hint) { try await $0.fetch(Query().where(\.code, .equal, one.code)) }
    try await pair.both(hint) { try await $0.fetch(Query().where(\.row, .equal, one.row).where(\.seat, .greaterOrEqual, seat)) }
    try await pair.both(hint) { try await $0.fetch(Query().sorted(by: \.code, .reverse).limit(4)) }
    try await pair.both(hint) { try await $0.count(Query().where(\.seat, .less, seat)) }
  }
}
