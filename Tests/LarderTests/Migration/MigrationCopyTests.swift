import Foundation
import LarderSQLite
import LarderTesting
import Testing

@testable import Larder

/// How a record of the new version may come into a store.
enum NewRecord: CaseIterable, Sendable {
  case save, batch, insert, update, transaction, replaceAll

  func write(to places: LocalRepository<Place>) async throws {
    let new = Place(id: "new", name: "new", count: 0, timeZone: "JST")
    switch self {
    case .save: try await places.save(new)
    case .batch: try await places.save(contentsOf: [new])
    case .insert: try await places.insert(new)
    case .update: try await places.update("1-3") { $0.name = "mine" }
    case .transaction: try await places.transaction { _ = try $0.save(new, in: places) }
    case .replaceAll: try await places.replaceAll(with: [new])
    }
  }
}

/// A kind of store that has files to copy.
enum CopiedStore: CaseIterable, Sendable {
  case json, sqlite, shared

  var backend: TestBackend { self == .json ? .json : .sqlite }

  func options(_ mode: StoreOptions.Migration.Mode = .manual, batchSize: Int = 256) -> StoreOptions {
    MigrationShelf.options(mode, backup: .beforeFirstRewrite, batchSize: batchSize, access: self == .shared ? .shared : .exclusive)
  }
}

@Suite("One copy for each migration", .timeLimit(.minutes(15))) struct MigrationCopyTests {
  private func copies(of shelf: MigrationShelf) throws -> [String] {
    try shelf.files().keys.filter { $0.contains("-before-") }.sorted()
  }

  private func file(_ name: String, beside shelf: MigrationShelf) throws -> URL {
    try #require(shelf.place.file?.deletingLastPathComponent().appending(path: name))
  }

  /// Returns what the first version of the app reads in a copy.
  private func oldCounts(_ name: String, _ shelf: MigrationShelf, _ store: CopiedStore) async throws -> [Int] {
    let old = try await LocalRepository<PlaceV1>(
      backend: store.backend.backend(try file(name, beside: shelf)), schema: .init("places"))
    let counts = try await old.loadAll().map(\.count).sorted()
    try await old.close()
    return counts
  }

  @Test(arguments: CopiedStore.allCases, NewRecord.allCases)
  func itIsMadeBeforeTheFirstRecordWhoeverWritesIt(_ store: CopiedStore, _ write: NewRecord) async throws {
    let shelf = try MigrationShelf(store.backend)
    try await shelf.fill(first: 20, second: 0)
    let places = try await shelf.open(store.options())
    #expect(places.migrationProgress.backupFile == nil)
    try await write.write(to: places)
    #expect(places.migrationProgress.backupFile?.hasSuffix("-before-places-v3") == true)
    try await places.finishMigration()
    try await places.close()
    #expect(try copies(of: shelf) == ["\(shelf.place.file?.lastPathComponent ?? "")-before-places-v3"])
    #expect(try await oldCounts(#require(copies(of: shelf).first), shelf, store) == Array(0..<20))
  }

  @Test(arguments: CopiedStore.allCases) func aRunThatEndedBeforeItsFirstBatchIsContinuedWithItsCopy(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    try await shelf.fill(first: 20, second: 0)
    for _ in 0..<4 {
      let (disk, places) = try await shelf.openFaulty(store.options(.eager)) { disk in
        disk.fail(.commit, with: RepositoryError(.inputOutput))
      }
      #expect(places.migrationProgress.error?.code == .inputOutput)
      #expect(places.migrationProgress.backupFile != nil)
      #expect(disk.calls(.commit) == 1)
      try await places.close()
    }
    let places = try await shelf.open(store.options(.eager, batchSize: 4))
    #expect(places.migrationProgress.rewritten == 20)
    try await places.close()
    #expect(try copies(of: shelf).count == 1)
    #expect(try await oldCounts(#require(copies(of: shelf).first), shelf, store) == Array(0..<20))
  }

  @Test(arguments: CopiedStore.allCases) func aCopyThatAnotherProgramHasWrittenPastIsReplaced(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    try await shelf.fill(first: 20, second: 0)
    for round in 0..<3 {
      // Killed after the copy and before the first batch; then the old program goes on.
      let (_, places) = try await shelf.openFaulty(store.options(.eager)) { $0.fail(.commit, with: RepositoryError(.inputOutput)) }
      #expect(places.migrationProgress.error?.code == .inputOutput)
      try await places.close()
      let old = try await LocalRepository<PlaceV1>(backend: shelf.place.makeBackend(), schema: .init("places"))
      try await old.save(PlaceV1(id: "1-\(20 + round)", title: "later", count: 20 + round))
      if round == 1 { try await old.delete("1-0") }
      try await old.close()
    }
    let places = try await shelf.open(store.options(.eager, batchSize: 4))
    #expect(places.migrationProgress.phase == .finished)
    #expect(places.migrationProgress.backupFile?.hasSuffix("-before-places-v3") == true)
    try await places.close()
    #expect(try copies(of: shelf).count == 1)
    #expect(try await oldCounts(#require(copies(of: shelf).first), shelf, store) == Array(1..<23))
  }

  @Test(arguments: [CopiedStore.json, .sqlite], [200, 236, 242]) func aStoreWithALongNameIsCopied(_ store: CopiedStore, _ length: Int)
    async throws
  {
    let shelf = try MigrationShelf(store.backend)
    let url = try file(String(repeating: "é", count: length / 2), beside: shelf)
    let old = try await LocalRepository<PlaceV1>(backend: store.backend.backend(url), schema: .init("places"))
    try await old.save(contentsOf: (0..<20).map { PlaceV1(id: "1-\($0)", title: "place", count: $0) })
    try await old.close()
    for phase in [MigrationProgress.Phase.finished, .notNeeded] {
      let places = try await LocalRepository(
        backend: store.backend.backend(url), schema: MigrationShelf.schema, options: store.options(.eager))
      #expect(places.migrationProgress.phase == phase)
      try await places.close()
    }
    let name = try #require(copies(of: shelf).first)
    #expect(try copies(of: shelf).count == 1 && name.hasSuffix("-before-places-v3"))
    #expect(try await oldCounts(name, shelf, store) == Array(0..<20))
  }

  @Test func aPathThatIsTooLongForACopyFailsTheMigrationAndWritesNothing() async throws {
    let shelf = try MigrationShelf(.sqlite)
    var directory = try #require(shelf.place.file).deletingLastPathComponent()
    // SQLite takes 500 bytes besides its own endings: the store fits, and the name of its copy does not.
    while directory.path.utf8.count < 430 { directory.append(path: String(repeating: "d", count: 30), directoryHint: .isDirectory) }
    let url = directory.appending(path: String(repeating: "n", count: 490 - directory.path.utf8.count))
    let old = try await LocalRepository<PlaceV1>(sqliteFile: url, schema: .init("places"))
    try await old.save(PlaceV1(id: "a", title: "a", count: 1))
    try await old.close()
    let options = CopiedStore.sqlite.options(.eager)
    let places = try await LocalRepository<Place>(sqliteFile: url, schema: MigrationShelf.schema, options: options)
    #expect(places.migrationProgress.error?.code == .inputOutput)
    let new = Place(id: "new", name: "new", count: 0, timeZone: "JST")
    #expect(await code { try await places.save(new) } == .inputOutput)
    try await places.close()
    let again = try await LocalRepository<PlaceV1>(sqliteFile: url, schema: .init("places"))
    #expect(try await again.loadAll().map(\.id) == ["a"])
    try await again.close()
  }

  @Test(arguments: CopiedStore.allCases) func aFileThatIsNotTheCopyStays(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    let other = try MigrationShelf(store.backend)
    try await other.fill(first: 20, second: 0)
    try await shelf.fill(first: 20, second: 0)
    let name = "\(try #require(shelf.place.file).lastPathComponent)-before-places-v3"
    // Another store's copy, a copy of an earlier time, which is replaced, and something else.
    try FileManager.default.copyItem(at: try #require(other.place.file), to: file(name, beside: shelf))
    try FileManager.default.copyItem(at: try #require(shelf.place.file), to: file(name + "-2", beside: shelf))
    try Data("mine".utf8).write(to: file(name + "-3", beside: shelf))
    let old = try await LocalRepository<PlaceV1>(backend: shelf.place.makeBackend(), schema: .init("places"))
    try await old.save(PlaceV1(id: "1-20", title: "later", count: 20))
    try await old.close()
    let before = try shelf.files().filter { $0.key.contains("-before-") }
    let places = try await shelf.open(store.options(.eager))
    #expect(places.migrationProgress.phase == .finished)
    #expect(places.migrationProgress.backupFile?.hasSuffix("-before-places-v3-2") == true)
    try await places.close()
    let after = try shelf.files()
    for (name, data) in before where !name.hasSuffix("-2") { #expect(after[name] == data) }
    #expect(after.keys.count == 4)
    #expect(try await oldCounts(name + "-2", shelf, store) == Array(0...20))
  }

  /// The same number of commits and the same revisions as the copy, but another value: the store was put back and went another way.
  @Test(arguments: CopiedStore.allCases) func aCopyOfAnotherHistoryIsNotTakenForIt(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    try await shelf.fill(first: 1, second: 0)
    let main = try #require(shelf.place.file)
    let saved = try Data(contentsOf: main)
    for count in [7, 8] {
      let old = try await LocalRepository<PlaceV1>(backend: shelf.place.makeBackend(), schema: .init("places"))
      try await old.save(PlaceV1(id: "1-0", title: "way", count: count))
      try await old.close()
      if count == 7 {
        try FileManager.default.copyItem(at: main, to: file("\(main.lastPathComponent)-before-places-v3", beside: shelf))
        try saved.write(to: main)
      }
    }
    let places = try await shelf.open(store.options())
    try await places.finishMigration()
    #expect(places.migrationProgress.backupFile?.hasSuffix("-before-places-v3-2") == true)
    try await places.close()
  }

  @Test(arguments: CopiedStore.allCases) func collectionsThatMigrateTogetherShareACopyThatTheOldAppCanOpen(_ store: CopiedStore)
    async throws
  {
    for isKilledBetween in [false, true] where !(isKilledBetween && store == .shared) {
      let shelf = try MigrationShelf(store.backend)
      try await shelf.fill(first: 10, second: 0)
      let old = try await LocalRepository<PlaceV1>(backend: shelf.place.makeBackend(), schema: .init("cities"))
      try await old.save(contentsOf: (0..<5).map { PlaceV1(id: "\($0)", title: "city", count: $0) })
      try await old.close()
      for name in isKilledBetween ? ["places", "cities"] : [nil] {
        let new = try await Store.open(try shelf.place.makeBackend(), options: store.options(.eager))
        for collection in name.map({ [$0] }) ?? ["places", "cities"] {
          let schema = RepositorySchema<Place>(collection, version: 3, migrations: MigrationShelf.steps)
          let repository = try await new.repository(schema)
          #expect(repository.migrationProgress.phase == .finished)
          #expect(repository.migrationProgress.backupFile?.hasSuffix("-before-places-v3") == true)
        }
        try await new.close()
      }
      #expect(try copies(of: shelf).count == 1)
      let copy = try await Store.open(store.backend.backend(file(#require(copies(of: shelf).first), beside: shelf)))
      #expect(try await copy.repository(RepositorySchema<PlaceV1>("places")).count() == 10)
      #expect(try await copy.repository(RepositorySchema<PlaceV1>("cities")).count() == 5)
      try await copy.close()
    }
  }

  @Test(arguments: CopiedStore.allCases) func withoutTheCopyNoRecordOfTheNewVersionIsWritten(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    try await shelf.fill(first: 5, second: 0)
    let (disk, places) = try await shelf.openFaulty(store.options()) { disk in
      for call in 1...NewRecord.allCases.count { disk.fail(.backup, call: call, with: RepositoryError(.full)) }
    }
    for write in NewRecord.allCases {
      #expect(await code { try await write.write(to: places) } == .full)
    }
    // What frees space goes through.
    #expect(try await places.delete("1-4"))
    #expect(disk.batches.count == 1)
    #expect(try await places.count() == 4)
    try await places.finishMigration()
    #expect(disk.calls(.backup) == NewRecord.allCases.count + 1)
    #expect(try await places.loadAll() == MigrationShelf.expected(first: 4, second: 0))
    try await places.close()
  }

  @Test(arguments: CopiedStore.allCases) func withoutOlderRecordsOrWithoutWishThereIsNoCopy(_ store: CopiedStore) async throws {
    let shelf = try MigrationShelf(store.backend)
    let empty = try await shelf.open(store.options())
    try await empty.save(MigrationShelf.expected()[0])
    try await empty.save(MigrationShelf.expected()[1])
    try await empty.close()
    let declining = try MigrationShelf(store.backend)
    try await declining.fill(first: 5, second: 0)
    let places = try await declining.open(MigrationShelf.options(.manual))
    try await places.save(Place(id: "new", name: "new", count: 0, timeZone: "JST"))
    try await places.finishMigration()
    try await places.close()
    #expect(try shelf.files().count == 1)
    #expect(try declining.files().count == 1)
  }
}
