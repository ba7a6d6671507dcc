import Dispatch
import Foundation
import LarderSQLite
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite("A migration beside an older program", .timeLimit(.minutes(15))) struct SharedMigrationTests {
  private static let options = MigrationShelf.options(.manual, access: .shared)

  private func openOld(_ shelf: MigrationShelf) async throws -> LocalRepository<PlaceV1> {
    try await LocalRepository(backend: try shelf.place.makeBackend(), schema: .init("places"), options: Self.options)
  }

  /// Stops the first step, until it is let go: a thread of the migration's own waits, and no other.
  private final class Gate: Sendable {
    let isReached = Flag()
    private let semaphore = DispatchSemaphore(value: 0)
    private let isFirst = Mutex(true)

    func pass() {
      let mustWait = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if !mustWait { return }
      isReached.set()
      semaphore.wait()
    }

    func open() { semaphore.signal() }
  }

  @Test func itLeavesNoRecordBehindThatWasSavedMeanwhile() async throws {
    let shelf = try MigrationShelf(.sqlite)
    try await shelf.fill(first: 5, second: 0)
    let gate = Gate()
    let step = Migration(from: 1) { object in
      gate.pass()
      object["name"] = object["title"]
      object["timeZone"] = "UTC"
    }
    let old = try await openOld(shelf)
    let places = try await shelf.open(Self.options, schema: .init("places", version: 2, migrations: [step]))
    let migration = Task { try await places.finishMigration() }
    try await until { gate.isReached.isSet }
    try await old.save(PlaceV1(id: "late", title: "late", count: 1))
    try await old.save(PlaceV1(id: "1-2", title: "changed", count: 2))
    gate.open()
    try await migration.value
    let progress = places.migrationProgress
    #expect(progress.phase == .finished)
    #expect((progress.total, progress.rewritten, progress.skipped, progress.remainingCount) == (7, 6, 1, 0))
    #expect(try await places.find(by: "1-2")?.name == "changed")
    // From now on the older program reads what it has, and writes no more.
    #expect(await code { try await old.save(PlaceV1(id: "later", title: "later", count: 1)) } == .newerSchema)
    try await old.close()
    try await places.close()
    #expect(try shelf.records().values.allSatisfy { $0.schemaVersion == 2 })
  }

  @Test func whatAnOlderProgramSavesLaterIsReadAtOnceAndRewrittenNextTime() async throws {
    let shelf = try MigrationShelf(.sqlite)
    let old = try await openOld(shelf)
    let places = try await shelf.open(Self.options)
    #expect(places.migrationProgress.phase == .notNeeded)
    try await old.save(PlaceV1(id: "late", title: "late", count: 1))
    try await places.refresh()
    #expect(try await places.find(by: "late") == Place(id: "late", name: "late", count: 102, timeZone: "UTC"))
    try await old.save(PlaceV1(id: "later", title: "later", count: 2))
    try await places.finishMigration()
    #expect(places.migrationProgress.rewritten == 2)
    try await old.close()
    try await places.close()
    #expect(try shelf.records().values.allSatisfy { $0.schemaVersion == 3 })
  }

  @Test func recordsThatCannotBeBroughtUpDoNotKeepItFromEnding() async throws {
    let shelf = try MigrationShelf(.sqlite)
    try await shelf.fill(first: 5, second: 0)
    let step = Migration(from: 1) { object in
      if object["id"] == "1-3" { throw StepFailed() }
      object["name"] = object["title"]
      object["timeZone"] = "UTC"
    }
    let places = try await shelf.open(Self.options, schema: .init("places", version: 2, migrations: [step]))
    try await places.finishMigration()
    try await places.finishMigration()
    let progress = places.migrationProgress
    #expect((progress.total, progress.rewritten, progress.failureCount, progress.remainingCount) == (5, 4, 1, 1))
    #expect(places.snapshot.undecodable.map(\.key.text) == ["1-3"])
    try await places.close()
  }
}
