import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite("A dry run changes nothing", .timeLimit(.minutes(15))) struct DryRunTests {
  /// The steps, with one that fails for two records.
  private static let schema = RepositorySchema<Place>(
    "places", version: 3,
    migrations: [
      .init(from: 1, PlaceV1.self, to: PlaceV2.self) { place in
        if place.count >= 18 { throw StepFailed() }
        return PlaceV2(id: place.id, name: place.title, count: place.count + 1)
      }, MigrationShelf.steps[1],
    ])

  private func expectReport(_ report: DryRunReport) {
    #expect(report.collection == "places")
    #expect(report.schemaVersion == 3)
    #expect(report.versions.map(\.version) == [1, 2, 3])
    #expect(report.versions.map(\.count) == [20, 5, 1])
    #expect(report.versions.map(\.failureCount) == [2, 0, 0])
    #expect(report.versions.allSatisfy { $0.duration > .zero })
    #expect(report.duration > .zero)
    #expect(report.failures.map(\.key.hash) == [RecordKey("1-18").hash, RecordKey("1-19").hash])
    #expect(report.failures.allSatisfy { $0.error.code == .migrationFailed && $0.schemaVersion == 1 })
    #expect((report.count, report.failureCount) == (26, 2))
    #expect(!report.isSound)
  }

  private func fill(_ shelf: MigrationShelf) async throws -> LocalRepository<Place> {
    try await shelf.fill(first: 20, second: 5)
    let places = try await shelf.open(MigrationShelf.options(.manual))
    try await places.save(Place(id: "3-0", name: "new", count: 0, timeZone: "UTC"))
    return places
  }

  @Test(arguments: MigrationShelf.backends) func itReportsEveryVersionAndLeavesAllFilesAsTheyAre(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await fill(shelf).close()
    let before = try shelf.files()
    expectReport(try await Store.dryRun(try shelf.place.makeBackend(), schema: Self.schema))
    #expect(try shelf.files() == before)
    try #require(before.count == (backend == .memory ? 0 : 1))
  }

  @Test(arguments: MigrationShelf.onDisk) func itReadsWhatAKilledAppLeftAndLeavesItThere(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("places.store")
    let v1 = try await LocalRepository<PlaceV1>(backend: backend.backend(file), schema: .init("places"))
    try await v1.save(contentsOf: (0..<5).map { PlaceV1(id: "\($0)", title: "", count: $0) })
    let killed = try directory.copy(except: "places.store-lock")
    try await v1.close()
    // A torn write at the end of the journal, which opening would cut.
    if backend == .json {
      let journal = killed.file("places.store-journal")
      var bytes = try Data(contentsOf: journal)
      // Not behind the last byte that is no zero: the checksum that ends a frame may end with one.
      let end = try JournalReader(data: bytes, file: journal.path).read { _ in }.end
      bytes.replaceSubrange(end..<(end + 3), with: [1, 2, 3])
      try bytes.write(to: journal)  // a test file: nobody needs it after a crash
    }
    let before = try MigrationShelf.files(of: killed.url).filter { !$0.key.hasSuffix("-shm") }
    #expect(before.count == 2)
    let report = try await Store.dryRun(backend.backend(killed.file("places.store")), schema: Self.schema)
    #expect(report.versions.map(\.count) == [5])
    #expect(report.isSound)
    let after = try MigrationShelf.files(of: killed.url).filter { !$0.key.hasSuffix("-shm") }
    #expect(after == before)
  }

  @Test(arguments: MigrationShelf.onDisk) func itWorksBesideAnAppThatHasTheStoreOpen(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    let places = try await fill(shelf)
    // SQLite's readers mark their place in the index of the log.
    let before = try shelf.files().filter { !$0.key.hasSuffix("-shm") }
    expectReport(try await Store.dryRun(try shelf.place.makeBackend(), schema: Self.schema))
    #expect(try shelf.files().filter { !$0.key.hasSuffix("-shm") } == before)
    try await places.save(Place(id: "3-1", name: "later", count: 0, timeZone: "UTC"))
    try await places.close()
    #expect(try shelf.records().count == 27)
  }

  @Test(arguments: MigrationShelf.onDisk) func aStoreThatIsNotThereIsNotMade(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let error = await #expect(throws: RepositoryError.self) {
      _ = try await Store.dryRun(backend.backend(directory.file("none")), schema: Self.schema)
    }
    #expect(error?.code == .dataMissing)
    #expect(try directory.names == [])
  }

  @Test(arguments: MigrationShelf.backends) func aNewerVersionIsRefused(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await fill(shelf).close()
    let error = await #expect(throws: RepositoryError.self) {
      _ = try await Store.dryRun(
        try shelf.place.makeBackend(), schema: RepositorySchema<PlaceV2>("places", version: 2, migrations: [MigrationShelf.steps[0]]))
    }
    #expect(error?.code == .newerSchema)
    #expect(error?.versions == .init(found: 3, supported: 2))
  }

  /// Foundation's coder reads an integer with a fraction, which Larder's refuses.
  @Test func itDecodesWithTheCoderOfTheOptions() async throws {
    struct Measured: Codable, Identifiable {
      var id = 1
      var height: Decimal
    }
    struct Counted: Codable, Identifiable {
      var id: Int
      var height: Int
    }
    let directory = try TemporaryDirectory()
    let backend = { JSONFileBackend(file: directory.file("heights.json")) }
    let measured = try await LocalRepository<Measured>(backend: backend(), schema: .init("heights"))
    try await measured.save(Measured(height: try #require(Decimal(string: "18014398509481985.5"))))
    try await measured.close()
    for (coding, isSound) in [(StoreOptions.Coding.larder, false), (.foundation, true)] {
      let report = try await Store.dryRun(backend(), schema: RepositorySchema<Counted>("heights"), options: StoreOptions(coding: coding))
      #expect(report.isSound == isSound && report.count == 1)
    }
  }

  @Test func aPlanWithAGapIsRefusedBeforeAnythingIsRead() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    let schema = RepositorySchema<Place>("places", version: 3, migrations: [MigrationShelf.steps[0]])
    let error = await #expect(throws: RepositoryError.self) { _ = try await Store.dryRun(backend, schema: schema) }
    #expect(error?.code == .unsupported)
    #expect(backend.calls(.open) == 0)
  }
}

@Suite("A JSON file is read without being changed", .timeLimit(.minutes(15))) struct JSONFileReadingTests {
  @Test func aReaderSeesWhatWasCommittedAndTheWriterIsUndisturbed() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("spots.json")
    let writer = try await LocalRepository<Spot>(jsonFile: file)
    let first = Spot("first")
    try await writer.save(first)
    try await writer.checkpoint()
    let second = Spot("second")
    try await writer.save(second)
    let reader = try await LocalRepository<Spot>(jsonFile: file, options: StoreOptions(access: .readOnly))
    #expect(Set(try await reader.loadAll()) == [first, second])
    #expect(await code { try await reader.save(Spot("refused")) } == .unsupported)
    #expect(await code { try await reader.checkpoint() } == .unsupported)
    try await writer.save(Spot("third"))
    #expect(try await reader.count() == 2)
    try await reader.close()
    #expect(try directory.names == ["spots.json", "spots.json-journal", "spots.json-lock"])
    try await writer.close()
    let store = try await Store.open(JSONFileBackend(file: file), options: StoreOptions(access: .readOnly))
    let report = await store.verify()
    #expect(report.isSound)
    #expect(report.recordCount == 3)
    // A repository of a store flushes when it is closed: nothing, here.
    try await store.repository(RepositorySchema<Spot>("records")).close()
    try await store.close()
    #expect(try directory.names == ["spots.json"])
  }

  /// Readers open again and again while a writer appends and folds; each sees one commit, whole.
  @Test func readersBesideABusyWriterSeeWholeCommits() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("pairs.json")
    let writer = try await LocalRepository<Measurement>(
      jsonFile: file, options: StoreOptions(durability: .buffered, checkpoint: .manual))
    try await writer.save(contentsOf: (0..<20).map { Measurement(id: $0, value: 0) })
    try await writer.checkpoint()
    let isOver = Flag()
    let reading = Task {
      var last = 0.0
      var opens = 0
      while !isOver.isSet || opens == 0 {
        let reader = try await LocalRepository<Measurement>(jsonFile: file, options: StoreOptions(access: .readOnly))
        let values = Set(try await reader.loadAll().map(\.value))
        #expect(values.count == 1)
        #expect((values.first ?? -1) >= last)
        last = values.first ?? last
        opens += 1
        try await reader.close()
      }
      return opens
    }
    for round in 1...300 {
      try await writer.save(contentsOf: (0..<20).map { Measurement(id: $0, value: Double(round)) })
      if round % 10 == 0 { try await writer.checkpoint() }
    }
    isOver.set()
    let opens = try await reading.value
    #expect(opens > 0)
    try await writer.close()
  }
}
