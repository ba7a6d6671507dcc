import Foundation
import LarderSQLite
import LarderTesting
import Testing

@testable import Larder

@Suite("A rewrite is no change", .timeLimit(.minutes(15))) struct MigrationRevisionTests {
  private static let changed = Place(id: "1-3", name: "mine", count: 7, timeZone: "JST")

  @Test(arguments: MigrationShelf.backends) func whatWasReadBeforeItCanBeSavedAfterIt(_ backend: TestBackend) async throws {
    let shelf = try MigrationShelf(backend)
    try await shelf.fill()
    let places = try await shelf.open(MigrationShelf.options(.manual))
    let before = try #require(places.revision(of: "1-3"))
    let other = try #require(places.revision(of: "1-4"))
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 20)
    #expect(places.revision(of: "1-3") == before)
    let saved = try await places.save(Self.changed, ifRevision: before)
    // The save is a change: what was known before it is out of date.
    #expect(await code { try await places.save(Self.changed, ifRevision: before) } == .revisionMismatch)
    try await places.save(Self.changed, ifRevision: saved)
    try await places.close()

    let again = try await shelf.open()
    #expect(again.revision(of: "1-4") == other)
    #expect(try await again.delete("1-4", ifRevision: other))
    try await again.close()
  }

  /// Rewritten records are replayed after a crash, although the main file has their revisions.
  @Test(arguments: MigrationShelf.onDisk) func itIsKeptByACrashedStoreToo(_ backend: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("places.store")
    let old = try await LocalRepository<PlaceV1>(backend: backend.backend(file), schema: .init("places"))
    try await old.save(contentsOf: (0..<10).map { PlaceV1(id: "1-\($0)", title: "place \($0)", count: $0) })
    try await old.close()
    let places = try await LocalRepository<Place>(
      backend: backend.backend(file), schema: MigrationShelf.schema, options: MigrationShelf.options(.eager))
    let killed = try directory.copy(except: "places.store-lock")
    try await places.close()
    var records: [StoredRecord] = []
    let found = backend.backend(killed.file("places.store"))
    let report = try found.openAndRecover(StoreOptions()) { records.append($0) }
    try found.close()
    #expect(records.count == 10)
    #expect(records.allSatisfy { $0.schemaVersion == 3 && $0.revision == Revision(1) })
    #expect(report.commit == Revision(2))
  }

  @Test func aChangeThatWasAnnouncedIsKnownToo() async throws {
    let shelf = try MigrationShelf(.memory)
    try await shelf.fill(first: 5, second: 0)
    let places = try await shelf.open(MigrationShelf.options(.manual))
    var changes = places.changes().makeAsyncIterator()
    try await places.finishMigration()
    let set = try #require(try await changes.next())
    #expect(set.changes.allSatisfy { $0.origin == .migration })
    let change = try #require(set.changes.first { $0.id == "1-3" })
    try await places.save(Self.changed, ifRevision: change.revision)
    try await places.close()
  }

  /// Processes that share a store follow each other by revision, so there it is a new one; who has read the old one here can still save.
  @Test func inASharedStoreTheOldRevisionHoldsInTheProcessThatHasRewrittenIt() async throws {
    let shelf = try MigrationShelf(.sqlite)
    try await shelf.fill(first: 5, second: 0)
    let places = try await shelf.open(MigrationShelf.options(.manual, access: .shared))
    let follower = try await shelf.open(MigrationShelf.options(.manual, access: .shared))
    let before = try #require(places.revision(of: "1-3"))
    try await places.finishMigration()
    let rewritten = try #require(places.revision(of: "1-3"))
    #expect(rewritten > before)
    try await follower.refresh()
    #expect(try follower.snapshot.records[RecordKey("1-3")]?.schemaVersion == 3)
    try await places.save(Self.changed, ifRevision: before)
    #expect(await code { try await follower.save(Self.changed, ifRevision: rewritten) } == .revisionMismatch)
    try await follower.close()
    try await places.close()
  }
}
