import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite("Older records are brought up when they are read", .timeLimit(.minutes(15))) struct MigrationReadTests {
  private static let manual = MigrationShelf.options(.manual)

  @Test(arguments: MigrationShelf.backends) func recordsOfEveryOlderVersionAreRead(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill()
    let places = try await shelf.open(Self.manual)
    #expect(places.migrationProgress.phase == .waiting)
    #expect(try await places.find(by: "1-3") == Place(id: "1-3", name: "place 3", count: 104, timeZone: "UTC"))
    #expect(try await places.find(by: "2-3") == Place(id: "2-3", name: "place 3", count: 103, timeZone: "UTC"))
    #expect(try await places.loadAll() == MigrationShelf.expected())
    #expect(places.snapshot.loadAll() == MigrationShelf.expected())
    #expect(places.snapshot.undecodable.isEmpty)
    let updated = try await places.update("1-3") { $0.count += 1_000 }
    #expect(updated.count == 1_104)
    try await places.close()
    // Only what was saved has the new version.
    let records = try shelf.records()
    #expect(records["1-3"]?.schemaVersion == 3)
    #expect(records["1-4"]?.schemaVersion == 1)
    #expect(records["2-4"]?.schemaVersion == 2)
    let again = try await shelf.open(Self.manual)
    #expect(try await again.find(by: "1-3")?.count == 1_104)
    try await again.close()
  }

  @Test(arguments: MigrationShelf.backends) func aRecordWhoseStepFailsStaysAsItWasAndTheOthersGoOn(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill()
    let before = try shelf.records()
    let schema = RepositorySchema<Place>(
      "places", version: 3,
      migrations: [
        .init(from: 1, PlaceV1.self, to: PlaceV2.self) { place in
          if place.count == 4 { throw StepFailed() }
          return PlaceV2(id: place.id, name: place.title, count: place.count + 1)
        }, MigrationShelf.steps[1],
      ])
    let places = try await shelf.open(schema: schema)
    let error = await #expect(throws: RepositoryError.self) { _ = try await places.find(by: "1-4") }
    #expect(error?.code == .migrationFailed)
    #expect(error?.message == "the step from version 1 to 2 failed")
    #expect(error?.keyHash == RecordKey("1-4").hash)
    #expect(error?.underlying is StepFailed)
    #expect(try await places.loadAll() == MigrationShelf.expected().filter { $0.id != "1-4" })
    try await places.finishMigration()
    #expect(try await places.loadAll() == MigrationShelf.expected().filter { $0.id != "1-4" })
    #expect(try await places.count() == 19)
    #expect(places.snapshot.count == 20)
    let failed = places.snapshot.undecodable
    #expect(failed.map(\.key.text) == ["1-4"])
    #expect(failed.map(\.schemaVersion) == [1])
    let progress = places.migrationProgress
    #expect(progress.phase == .finished)
    #expect((progress.total, progress.rewritten, progress.failureCount) == (20, 19, 1))
    #expect(progress.remainingCount == 1)
    #expect(progress.failures.map(\.key.text) == ["1-4"])
    #expect(progress.failures.first?.error.code == .migrationFailed)
    try await places.close()
    let after = try shelf.records()
    #expect(after["1-4"]?.checksum == before["1-4"]?.checksum)
    #expect(after.values.count { $0.schemaVersion == 3 } == 19)

    // A step that is mended brings it up.
    let mended = try await shelf.open()
    try await mended.finishMigration()
    #expect(mended.migrationProgress.total == 1)
    #expect(try await mended.loadAll() == MigrationShelf.expected())
    try await mended.close()
  }

  @Test func aStepMayNotChangeTheId() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 2, second: 0)
    let places = try await shelf.open(
      Self.manual,
      schema: .init(
        "places", version: 2,
        migrations: [
          .init(from: 1, PlaceV1.self, to: Place.self) { Place(id: $0.id + "x", name: $0.title, count: $0.count, timeZone: "") }
        ]))
    #expect(await code { _ = try await places.find(by: "1-0") } == .migrationFailed)
    #expect(try await places.find(by: "1-0x") == nil)
    #expect(places.snapshot.undecodable.count == 2)
    try await places.close()
  }

  @Test func aResultThatDoesNotDecodeOrIsTooLargeIsReported() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 2, second: 0)
    let places = try await shelf.open(
      StoreOptions(limits: .init(recordBytes: 500), migration: .init(mode: .manual)),
      schema: .init(
        "places", version: 2,
        migrations: [
          .init(from: 1) { object in
            if object["id"] == "1-1" { object["name"] = .string(String(repeating: "x", count: 1_000)) }
          }
        ]))
    for id in ["1-0", "1-1"] {
      let error = await #expect(throws: RepositoryError.self) { _ = try await places.find(by: id) }
      #expect(error?.code == .migrationFailed)
      #expect(error?.keyHash == RecordKey(id).hash)
      #expect(error?.message.contains(id == "1-0" ? "does not decode" : "at most 500") == true)
    }
    try await places.close()
  }

  @Test(arguments: MigrationShelf.backends) func aRecordThatIsOlderThanTheFirstStepIsReported(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 2, second: 2)
    let places = try await shelf.open(
      schema: .init("places", version: 3, migrations: [MigrationShelf.steps[1]]))
    let error = await #expect(throws: RepositoryError.self) { _ = try await places.find(by: "1-1") }
    #expect(error?.code == .migrationFailed)
    #expect(error?.message == "there is no step from version 1; the oldest is from 2")
    try await places.finishMigration()
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 0, second: 2))
    #expect(places.migrationProgress.failureCount == 2)
    try await places.close()
  }

  @Test(arguments: MigrationShelf.backends) func withoutStepsOldRecordsAreDecodedAsTheyAre(_ backend: TestBackend) async throws {
    struct Wider: Codable, Identifiable, Hashable, Sendable {
      let id: String
      var title: String
      var note: String?
    }
    let shelf = try MigrationShelf(backend)
    try await shelf.fill(first: 3, second: 0)
    let before = try shelf.records()
    let wider = try await LocalRepository<Wider>(
      backend: try shelf.place.makeBackend(), schema: .init("places", version: 2), options: MigrationShelf.options())
    #expect(try await wider.find(by: "1-1") == Wider(id: "1-1", title: "place 1", note: nil))
    try await wider.finishMigration()
    try await wider.close()
    let after = try shelf.records()
    #expect(after.values.allSatisfy { $0.schemaVersion == 2 })
    #expect(after.mapValues(\.value) == before.mapValues(\.value))
  }

  /// Two readers bring a record up at the same moment: the second one begins and ends while the first is within the step.
  @Test func whatAReaderHasSeenFirstIsWhatAllSeeAndWhatIsStored() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 1, second: 0)
    let calls = Mutex(0)
    let other = Mutex<LocalRepository<Place>?>(nil)
    let places = try await shelf.open(
      Self.manual,
      schema: .init(
        "places", version: 2,
        migrations: [
          .init(from: 1, PlaceV1.self, to: Place.self) { place in
            let call = calls.withLock { calls in
              calls += 1
              return calls
            }
            if call == 1 {
              let places = other.withLock { $0 }
              let seen = try places?.snapshot.find(by: place.id)
              #expect(seen?.count == 2)
            }
            return Place(id: place.id, name: place.title, count: call, timeZone: "")
          }
        ]))
    other.withLock { $0 = places }
    #expect(try await places.find(by: "1-0")?.count == 2)
    try await places.finishMigration()
    #expect(try await places.find(by: "1-0")?.count == 2)
    #expect(calls.withLock { $0 } == 2)
    other.withLock { $0 = nil }
    try await places.close()
    #expect(try shelf.records()["1-0"]?.value.map { String(decoding: $0, as: UTF8.self).contains(#""count":2"#) } == true)
  }

  @Test(arguments: MigrationShelf.onDisk) func aNewerStoreIsRefusedAndStaysAsItIs(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("places.store")
    // No checkpoint of a store that idles on a busy machine: its log must be there when it is copied.
    let newer = try await LocalRepository<Place>(
      backend: backend.backend(file), schema: MigrationShelf.schema, options: StoreOptions(checkpoint: .manual))
    try await newer.save(contentsOf: MigrationShelf.expected())
    let killed = try directory.copy(except: "places.store-lock")
    #expect(try killed.names.count > 1)  // its journal or log is there
    try await newer.close()
    let closed = try directory.copy()
    for found in [killed, closed] {
      // The index of SQLite's log is made anew by whoever reads the log, and holds no records.
      let before = try MigrationShelf.files(of: found.url).filter { !$0.key.hasSuffix("-shm") }
      for version in 1...2 {
        let error = await #expect(throws: RepositoryError.self) {
          _ = try await LocalRepository<Place>(
            backend: backend.backend(found.file("places.store")), schema: .init("places", version: version))
        }
        #expect(error?.code == .newerSchema)
        #expect(error?.versions == .init(found: 3, supported: version))
        #expect(try MigrationShelf.files(of: found.url).filter { !$0.key.hasSuffix("-shm") } == before)
      }
      let again = try await LocalRepository<Place>(backend: backend.backend(found.file("places.store")), schema: MigrationShelf.schema)
      #expect(try await again.loadAll() == MigrationShelf.expected())
      try await again.close()
    }
  }
}
