import Foundation
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// A store that began without a name gets one: no opening loses sight of its records.
@Suite("A collection that gets another name", .timeLimit(.minutes(15))) struct RenamingTests {
  private static let named = RepositorySchema<Spot>("spots", indexes: [.ordered(\.name)])
  private static let renamed = RepositorySchema<Spot>("spots", indexes: [.ordered(\.name)], renamedFrom: "records")
  private static let spots = (0..<20).map { Spot("spot \($0)") }

  /// Writes records under the default name, as the first version of an app does, and deletes one.
  private func fill(_ place: BackendPlace) async throws {
    let repository = try await LocalRepository<Spot>(backend: try place.makeBackend())
    try await repository.save(contentsOf: Self.spots)
    try await repository.close()
  }

  private func error(_ open: () async throws -> Void) async -> RepositoryError? {
    do {
      try await open()
      return nil
    } catch {
      return error as? RepositoryError
    }
  }

  /// The stored records of a closed store.
  private func contents(_ place: BackendPlace) throws -> (records: [StoredRecord], commit: Revision) {
    let backend = try place.makeBackend()
    var records: [StoredRecord] = []
    let report = try backend.openAndRecover(StoreOptions()) { records.append($0) }
    backend.abandon()
    return (records, report.commit)
  }

  @Test(arguments: TestBackend.allCases) func aNameThatIsGivenLaterIsRefusedAndTheWayOutNamed(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let before = try contents(place)
    for access in kind == .log ? [StoreOptions.Access.exclusive] : [.exclusive, .readOnly] {
      let error = await error {
        _ = try await LocalRepository(backend: place.makeBackend(), schema: Self.named, options: .init(access: access))
      }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains("RepositorySchema(\"spots\", renamedFrom: \"records\")") == true, "\(String(describing: error))")
      #expect(error?.message.contains("found 20 records") == true)
    }
    let after = try contents(place)
    #expect(after.commit == before.commit && after.records.count == 20)
    // Indexes without a name are the second step, and lose nothing.
    let second = try await LocalRepository(backend: try place.makeBackend(), schema: RepositorySchema<Spot>(indexes: [.ordered(\.name)]))
    #expect(try await second.count() == 20)
    try await second.close()
  }

  @Test(arguments: TestBackend.allCases) func theRecordsMoveInOneCommitAndAsTheyAreStored(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let before = try contents(place)
    let disk = FaultInjectingBackend(try place.makeBackend())
    let repository = try await LocalRepository(backend: disk, schema: Self.renamed)
    #expect(disk.calls(.commit) == 1)
    let report = repository.openReport
    #expect(report.renamed == OpenReport.Renaming(oldName: "records", name: "spots", recordCount: 20))
    #expect(report.isClean && report.collections == [.init(name: "spots", recordCount: 20)] && report.recordCount == 20)
    #expect(report.commit.number == before.commit.number + 1)
    #expect(try repository.snapshot.records.ordered().allSatisfy { $0.isEncoded }, "nothing was decoded to move it")
    #expect(Set(try await repository.loadAll()) == Set(Self.spots))
    #expect(try await repository.fetch(Query().where(#Predicate { $0.name == "spot 7" })).count == 1)
    try await repository.close()

    let after = try contents(place)
    let values = { (records: [StoredRecord], name: String) in
      Dictionary(uniqueKeysWithValues: records.filter { $0.collection == name && $0.value != nil }.map { ($0.key, $0.value) })
    }
    #expect(values(after.records, "spots") == values(before.records, "records"))
    #expect(values(after.records, "records").isEmpty)
    #expect(after.records.filter { $0.value != nil }.allSatisfy { $0.revision == after.commit })

    let again = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed)
    #expect(again.openReport.renamed == nil && again.openReport.commit == after.commit)
    #expect(try await again.count() == 20)
    try await again.close()
    let named = try await LocalRepository(backend: try place.makeBackend(), schema: Self.named)
    #expect(try await named.count() == 20)
    try await named.close()
  }

  /// The tombstones of the move keep the old name known to the store, and must not make it look emptied.
  @Test(arguments: TestBackend.allCases, [10_000, 3, 0]) func anOldAppDoesNotOpenTheMovedFileAsAnEmptyOne(
    _ kind: TestBackend, _ tombstones: Int
  ) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let options = StoreOptions(limits: .init(tombstones: tombstones))
    let repository = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed, options: options)
    try await repository.checkpoint()
    // Edits of all records leave no trace of where they came from.
    try await repository.save(contentsOf: Self.spots)
    try await repository.close()
    let error = await error { _ = try await LocalRepository<Spot>(backend: place.makeBackend(), options: options) }
    #expect(error?.code == .unsupported && error?.message.contains("spots (20)") == true, "\(String(describing: error))")
  }

  @Test(arguments: TestBackend.allCases) func aDefaultNameThatItsUserEmptiedIsStillOpened(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    let store = try await Store.open(try place.makeBackend())
    let records = try await store.repository(RepositorySchema<Spot>())
    let others = try await store.repository(RepositorySchema<Spot>("others"))
    try await records.save(Self.spots[0])
    try await others.save(Self.spots[1])
    try await records.delete(Self.spots[0].id)
    try await store.close()
    let again = try await LocalRepository<Spot>(backend: try place.makeBackend())
    #expect(try await again.count() == 0 && again.openReport.isClean)
    try await again.close()
    // And a new name beside it has nothing to move.
    let renamed = try await LocalRepository(
      backend: try place.makeBackend(), schema: RepositorySchema<Spot>("others", renamedFrom: "records"))
    #expect(try await renamed.count() == 1 && renamed.openReport.renamed == nil)
    try await renamed.close()
  }

  @Test(arguments: TestBackend.allCases) func recordsUnderBothNamesAreRefusedAndBothNamed(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    let store = try await Store.open(try place.makeBackend())
    try await store.repository(RepositorySchema<Spot>()).save(contentsOf: Self.spots[0..<3])
    try await store.repository(RepositorySchema<Spot>("spots")).save(contentsOf: Self.spots[3..<5])
    try await store.close()
    let before = try contents(place)
    let error = await error { _ = try await LocalRepository(backend: place.makeBackend(), schema: Self.renamed) }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("found 3 under records and 2 under spots") == true, "\(String(describing: error))")
    let both = try await Store.open(try place.makeBackend())
    let inStore = await self.error { _ = try await both.repository(Self.renamed) }
    #expect(inStore?.code == .unsupported)
    try await both.close()
    #expect(try contents(place).records.map(\.checksum) == before.records.map(\.checksum))
  }

  @Test(arguments: [TestBackend.memory, .json, .sqlite]) func aStoreThatIsOnlyReadSaysThatItMustBeOpenedForWritingOnce(_ kind: TestBackend)
    async throws
  {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let readOnly = StoreOptions(access: .readOnly)
    let error = await error { _ = try await LocalRepository(backend: place.makeBackend(), schema: Self.renamed, options: readOnly) }
    #expect(error?.code == .unsupported && error?.message.contains("open it once for writing") == true, "\(String(describing: error))")
    let store = try await Store.open(try place.makeBackend(), options: readOnly)
    let inStore = await self.error { _ = try await store.repository(Self.renamed) }
    #expect(inStore?.code == .unsupported && inStore?.message.contains("open it once for writing") == true)
    try await store.close()
    try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed).close()
    let moved = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed, options: readOnly)
    #expect(try await moved.count() == 20)
    try await moved.close()
  }

  @Test(arguments: TestBackend.allCases) func aNameThatNobodyHasIsRefusedWhereTheRecordsHaveAThirdOne(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed).close()
    let again = RepositorySchema<Spot>("places", renamedFrom: "records")
    let error = await error { _ = try await LocalRepository(backend: place.makeBackend(), schema: again) }
    #expect(error?.code == .unsupported && error?.message.contains("spots (20)") == true, "\(String(describing: error))")
    let right = try await LocalRepository(
      backend: try place.makeBackend(), schema: RepositorySchema<Spot>("places", renamedFrom: "spots"))
    #expect(try await right.count() == 20)
    try await right.close()
    let old = await self.error { _ = try await LocalRepository(backend: place.makeBackend(), schema: Self.named) }
    #expect(old?.message.contains("have moved to another name places (20)") == true, "\(String(describing: old))")
  }

  @Test func aStoreOfSeveralCollectionsMovesOneAndKeepsTheOthers() async throws {
    let backend = InMemoryBackend()
    let first = try await Store.open(backend)
    try await first.repository(RepositorySchema<Spot>()).save(contentsOf: Self.spots)
    try await first.repository(RepositorySchema<Measurement>("numbers")).save(Measurement(id: 1, value: 1))
    try await first.close()
    let store = try await Store.open(backend)
    // A new name is no mistake in a store of several collections.
    let other = try await store.repository(RepositorySchema<Spot>("others"))
    #expect(try await other.count() == 0)
    let spots = try await store.repository(Self.renamed)
    #expect(try await spots.count() == 20 && spots.openReport.renamed?.recordCount == 20)
    #expect(spots.openReport.collections.map(\.name) == ["numbers", "spots"])
    #expect(try await store.repository(RepositorySchema<Measurement>("numbers")).count() == 1)
    let twice = try await store.repository(Self.renamed)
    #expect(twice.openReport.renamed == nil)
    #expect(try await twice.count() == 20)
  }

  @Test func aCollectionThatIsOpenUnderItsOldNameIsNotMovedAway() async throws {
    let store = try await Store.open(InMemoryBackend())
    let old = try await store.repository(RepositorySchema<Spot>())
    try await old.save(contentsOf: Self.spots)
    let error = await error { _ = try await store.repository(Self.renamed) }
    #expect(error?.code == .unsupported && error?.message.contains("was opened since the store was") == true)
    #expect(try await old.count() == 20)
  }

  @Test(arguments: [TestBackend.memory, .json, .sqlite]) func recordsThatDoNotDecodeAndThoseOverALimitMoveWithTheirBytes(
    _ kind: TestBackend
  ) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    let strangers = try await LocalRepository<Measurement>(backend: try place.makeBackend(), schema: .init(version: 2))
    try await strangers.save(Measurement(id: 5, value: 0.5))
    try await strangers.close()
    let large = try await LocalRepository<Place>(backend: try place.makeBackend(), schema: .init(version: 3))
    try await large.save(Place(id: "large", name: String(repeating: "x", count: 2_000), count: 1, timeZone: "UTC"))
    try await large.save(Place(id: "small", name: "y", count: 1, timeZone: "UTC"))
    try await large.close()
    let before = Dictionary(uniqueKeysWithValues: try contents(place).records.map { ($0.key, $0) })
    let schema = RepositorySchema<Place>("places", version: 3, renamedFrom: "records")
    let options = StoreOptions(limits: .init(recordBytes: 1_000))
    let repository = try await LocalRepository(backend: try place.makeBackend(), schema: schema, options: options)
    #expect(repository.openReport.renamed?.recordCount == 3)
    #expect(try await repository.loadAll().map(\.id) == ["small"])
    let undecodable = repository.snapshot.undecodable
    #expect(Set(undecodable.map(\.error.code)) == [.migrationFailed, .tooLarge] && undecodable.map(\.schemaVersion).sorted() == [2, 3])
    try await repository.close()
    let after = try contents(place).records.filter { $0.value != nil }
    #expect(after.count == 3 && after.allSatisfy { $0.collection == "places" })
    for record in after { #expect(record.value == before[record.key]?.value && record.schemaVersion == before[record.key]?.schemaVersion) }
  }

  @Test(arguments: MigrationShelf.backends) func movedRecordsAreMigratedAsBefore(_ kind: TestBackend) async throws {
    let shelf = try MigrationShelf(kind)
    let v1 = try await LocalRepository<PlaceV1>(backend: try shelf.place.makeBackend())
    try await v1.save(contentsOf: (0..<10).map { PlaceV1(id: "1-\($0)", title: "place \($0)", count: $0) })
    try await v1.close()
    let schema = RepositorySchema<Place>("places", version: 3, migrations: MigrationShelf.steps, renamedFrom: "records")
    let dry = try await Store.dryRun(try shelf.place.makeBackend(), schema: schema)
    #expect(dry.isSound && dry.count == 10)
    let repository = try await shelf.open(MigrationShelf.options(.eager, backup: .beforeFirstRewrite), schema: schema)
    #expect(repository.migrationProgress.phase == .finished && repository.migrationProgress.rewritten == 10)
    #expect(try await repository.loadAll() == MigrationShelf.expected(first: 10, second: 0))
    try await repository.close()
    #expect(try shelf.records().values.filter { $0.value != nil }.allSatisfy { $0.schemaVersion == 3 && $0.collection == "places" })
    // An app of version 1 refuses the migrated store. It opens the copy that was made before the migration.
    let old = await error { _ = try await LocalRepository<PlaceV1>(backend: shelf.place.makeBackend()) }
    #expect(old?.code == .unsupported)
    guard let file = repository.migrationProgress.backupFile else {
      #expect(kind == .memory)
      return
    }
    #expect(file.hasSuffix("-before-places-v3"))
    let url = URL(fileURLWithPath: file)
    let copy = try await kind == .json ? LocalRepository<PlaceV1>(jsonFile: url) : LocalRepository<PlaceV1>(sqliteFile: url)
    #expect(try await copy.loadAll().map(\.title).sorted() == (0..<10).map { "place \($0)" })
    try await copy.close()
  }

  /// A name for the default name's records that is meant for another type must not take them.
  @Test(arguments: TestBackend.allCases) func recordsOfAnotherTypeAreNotMoved(_ kind: TestBackend) async throws {
    let place = try kind.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let before = try contents(place)
    let schema = RepositorySchema<Measurement>("numbers", renamedFrom: "records")
    let error = await error { _ = try await LocalRepository(backend: place.makeBackend(), schema: schema) }
    #expect(error?.code == .unsupported && error?.message.contains("found 8 that do not decode") == true, "\(String(describing: error))")
    #expect(try contents(place).commit == before.commit)
    let repository = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed)
    #expect(try await repository.count() == 20)
    try await repository.close()
  }

  /// One store, both names: the old one is gone with the move.
  @Test func theOldNameIsNotOpenedBehindTheMove() async throws {
    let backend = InMemoryBackend()
    let first = try await LocalRepository<Spot>(backend: backend)
    try await first.save(contentsOf: Self.spots)
    try await first.close()
    let store = try await Store.open(backend)
    _ = try await store.repository(Self.renamed)
    let error = await error { _ = try await store.repository(RepositorySchema<Spot>()) }
    #expect(error?.code == .unsupported && error?.message.contains("have moved to another") == true, "\(String(describing: error))")
  }

  @Test func recordsOfANewerVersionAreRefusedBeforeTheyAreMoved() async throws {
    let backend = InMemoryBackend()
    let newer = try await LocalRepository<Spot>(backend: backend, schema: .init(version: 4))
    try await newer.save(Self.spots[0])
    try await newer.close()
    let disk = FaultInjectingBackend(backend)
    let error = await error { _ = try await LocalRepository(backend: disk, schema: Self.renamed) }
    #expect(error?.code == .newerSchema && disk.calls(.commit) == 0 && disk.calls(.recover) == 0)
  }

  @Test func aReaderThatResumesLearnsOfTheDeletionsBeforeTheMove() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Spot>(backend: backend)
    let known = try await old.save(contentsOf: Self.spots)
    try await old.delete(Self.spots[0].id)
    try await old.close()
    let repository = try await LocalRepository(backend: backend, schema: Self.renamed)
    var changes = repository.changes(since: known).makeAsyncIterator()
    let set = try #require(try await changes.next())
    #expect(set.changes.filter { $0.kind == .deleted }.map(\.id) == [Self.spots[0].id])
    #expect(set.changes.count == 20)
    try await repository.close()
  }

  @Test func aTrialOfASchemaSeesRecordsUnderTheOldNameAndRefusesBoth() async throws {
    let backend = InMemoryBackend()
    let store = try await Store.open(backend)
    try await store.repository(RepositorySchema<Spot>()).save(contentsOf: Self.spots[0..<3])
    try await store.repository(RepositorySchema<Spot>("spots")).save(contentsOf: Self.spots[3..<5])
    try await store.close()
    let error = await error { _ = try await Store.dryRun(backend, schema: Self.renamed) }
    #expect(error?.code == .unsupported && error?.message.contains("found 3 under records and 2 under spots") == true)
  }

  @Test(arguments: [RepositoryError.Code.full, .inputOutput]) func aMoveThatTheDiskRefusesChangesNothing(_ code: RepositoryError.Code)
    async throws
  {
    let place = try TestBackend.json.factory.makePlace()
    defer { place.remove() }
    try await fill(place)
    let before = try contents(place)
    let disk = FaultInjectingBackend(try place.makeBackend())
    disk.fail(.commit, with: RepositoryError(code))
    let error = await error { _ = try await LocalRepository(backend: disk, schema: Self.renamed) }
    #expect(error?.code == code)
    if code == .full { #expect(error?.message.contains("make room, or open them under the name records") == true) }
    #expect(try contents(place).commit == before.commit)
    let repository = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed)
    #expect(try await repository.count() == 20)
    try await repository.close()
  }

  /// A failed sync: the store has the move, and the opening that made it could not know.
  @Test func aMoveWhoseOutcomeIsUnknownIsFoundDoneOrIsMadeAgain() async throws {
    for moment in [FaultInjectingBackend.Moment.before, .after] {
      let place = try TestBackend.json.factory.makePlace()
      defer { place.remove() }
      try await fill(place)
      let disk = FaultInjectingBackend(try place.makeBackend())
      disk.fail(.commit, with: RepositoryError(.outcomeUnknown), moment)
      let error = await error { _ = try await LocalRepository(backend: disk, schema: Self.renamed) }
      #expect(error?.code == .outcomeUnknown)
      let repository = try await LocalRepository(backend: try place.makeBackend(), schema: Self.renamed)
      #expect(try await repository.count() == 20)
      #expect((repository.openReport.renamed == nil) == (moment == .after))
      try await repository.close()
    }
  }

  @Test(arguments: ["spots", "", ".hidden", "larder.sync.records"]) func aSchemaNamesAnotherCollectionThatItWas(_ name: String) {
    let error = #expect(throws: RepositoryError.self) { try RepositorySchema<Spot>("spots", renamedFrom: name).validate() }
    #expect(error?.code == .unsupported && error?.message.contains("renamedFrom") == true)
  }
}
