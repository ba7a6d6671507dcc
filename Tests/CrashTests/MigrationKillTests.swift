import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

// Run by hand with LARDER_KILLS=50 LARDER_RECORDS=100000, which takes longer than the other suites have.

/// A record as the first version had it; LedgerWriter has the same types, and the step between them.
private struct OldPlace: Codable, Identifiable, Sendable {
  let id: Int
  var title: String
  var count: Int
}

private struct Place: Codable, Identifiable, Equatable, Sendable {
  let id: Int
  var name: String
  var count: Int
  var padding: String

  init(_ old: OldPlace) { (id, name, count, padding) = (old.id, old.title, old.count + 1, String(repeating: "x", count: old.id % 97)) }
}

@Suite("A migration that is killed", .serialized, .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct MigrationKillTests {
  /// The number of records, which are rewritten 64 at a time; `LARDER_RECORDS` sets another number.
  private var count: Int { ProcessInfo.processInfo.environment["LARDER_RECORDS"].flatMap(Int.init) ?? 1_500 }

  @Test(arguments: DiskBackend.allCases) func alwaysCompletesLaterWithEveryRecordMigratedOnce(_ kind: DiskBackend) async throws {
    let figures = try await KillRow.migration.run(kind, KillRow.seed()) { kills, seed in try await lane(kind, kills, seed) }
    #expect(figures.amid > 0)
  }

  /// Kills the process at random moments of a rewrite, until it has been killed often enough; a store that it completes meanwhile is put
  /// back to where it was before.
  private func lane(_ kind: DiskBackend, _ kills: Int, _ seed: UInt64) async throws -> KillFigures {
    let count = count
    var random = SeededGenerator(seed)
    let name = "places.\(kind.rawValue)"
    let pristine = try await oldStore(kind, name)
    var figures = KillFigures()
    var current = try pristine.copy()
    var found = 0
    // Where the kills fall depends on the machine: it goes on until one has fallen amid the rewrite.
    while figures.kills < kills || (figures.amid == 0 && figures.kills < 20 * kills) {
      // Before it is open, while it makes the copy, or after some of its batches.
      let lines = try await Self.lines(current.file(name), killedAfter: random.int(0..<8), .microseconds(random.int(0..<4_000)))
      figures.kills += 1
      try #require(!lines.contains { $0.hasPrefix("failed") }, "kill \(figures.kills) of LARDER_SEED=\(seed): \(lines)")
      let (migrated, problem) = try await look(at: current.copy(), kind, name, count)
      try #require(problem == nil, "kill \(figures.kills) of LARDER_SEED=\(seed): \(problem ?? "")")
      try #require(migrated >= found, "kill \(figures.kills) of LARDER_SEED=\(seed): \(found) were migrated, now \(migrated)")
      // A batch that it has said is a commit that was acknowledged.
      let said = lines.last { $0.hasPrefix("rewritten ") }.flatMap { Int($0.dropFirst(10)) } ?? 0
      try #require(migrated >= said, "kill \(figures.kills) of LARDER_SEED=\(seed): \(said) were said, \(migrated) are there")
      figures.acknowledged += lines.count { $0.hasPrefix("rewritten ") }
      found = migrated
      if migrated > 0, migrated < count { figures.amid += 1 }
      if migrated == count {
        try await expectOneCopy(in: current, kind, name)
        current = try pristine.copy()
        found = 0
      }
    }
    let lines = try await Self.lines(current.file(name))
    #expect(lines.last?.hasPrefix("finished") == true, "\(lines)")
    let (migrated, problem) = try await look(at: current, kind, name, count)
    #expect(problem == nil)
    #expect(migrated == count)
    try await expectOneCopy(in: current, kind, name)
    return figures
  }

  /// Makes a store of old records in a directory of its own.
  private func oldStore(_ kind: DiskBackend, _ name: String) async throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory(inMemory: Torture.isOn)
    let old = try await LocalRepository<OldPlace>(backend: kind.backend(directory.file(name)), schema: .init("places"))
    try await old.save(contentsOf: (0..<count).map { OldPlace(id: $0, title: "place \($0)", count: $0 * 3) })
    try await old.close()
    return directory
  }

  /// Runs a migration to its end, or until it is killed after so many lines and so much time.
  private static func lines(_ file: URL, killedAfter count: Int = .max, _ pause: Duration = .zero) async throws -> [Substring] {
    try await DispatchQueue.global().run {
      Result { try WriterProcess("migrate", file.path).linesUntilKilled(after: count, and: pause) }
    }.get()
  }

  /// Expects the one copy that was made before the first rewrite, however often a run was killed: it is what the old version left.
  private func expectOneCopy(in directory: TemporaryDirectory, _ kind: DiskBackend, _ name: String) async throws {
    let copy = "\(name)-before-places-v2"
    #expect(try directory.names.filter { $0.contains("before") } == [copy])
    let before = try await LocalRepository<OldPlace>(backend: kind.backend(directory.file(copy)), schema: .init("places"))
    #expect(try await before.loadAll().allSatisfy { $0.count == $0.id * 3 })
    #expect(try await before.count() == count)
    try await before.close()
  }

  /// Runs that are killed while they copy, or right behind it, go on with one copy, which is what the old version left.
  @Test func runsThatShareTheStoreLeaveOneCopyHoweverOftenTheyAreKilled() async throws {
    var random = SeededGenerator(KillRow.seed())
    let directory = try await oldStore(.sqlite, "places.sqlite")
    let file = directory.file("places.sqlite")
    for _ in 0..<8 {
      let process = try WriterProcess("migrate", file.path, "shared")
      // At the latest after the first batch: the copy is made between the two.
      for _ in 0..<(random.next() % 3) { _ = process.nextLine() }
      for _ in 0..<(random.next() % 20_000) { _ = random.next() }
      process.kill()
      while process.nextLine() != nil {}
      process.waitUntilExit()
    }
    let process = try WriterProcess("migrate", file.path, "shared")
    var last: Substring?
    while let line = process.nextLine() { last = line }
    process.waitUntilExit()
    #expect(last?.hasPrefix("finished") == true, "\(last ?? "")")
    // A kill between the two writes of a frame leaves a torn one, which the next opening keeps in a file of its own.
    let names = try directory.names.filter { !$0.hasPrefix("places.sqlite-quarantine-") }
    #expect(names == ["places.sqlite", "places.sqlite-before-places-v2"])
    let copy = directory.url.appendingPathComponent("places.sqlite-before-places-v2")
    let before = try await LocalRepository<OldPlace>(sqliteFile: copy, schema: .init("places"))
    #expect(try await before.count() == count)
    try await before.close()
  }

  /// Reads a store as the backend has it: every record at one of the two versions, there once, with the value that version must have.
  private func look(at directory: TemporaryDirectory, _ kind: DiskBackend, _ name: String, _ count: Int) async throws -> (Int, String?) {
    let backend = kind.backend(directory.url.appendingPathComponent(name))
    var records: [StoredRecord] = []
    _ = try backend.openAndRecover(StoreOptions()) { if $0.value != nil { records.append($0) } }
    let report = backend.verify()
    try backend.close()
    guard report.isSound else { return (0, "\(report.problems)") }
    guard records.count == count, Set(records.map(\.key)).count == count else { return (0, "\(records.count) records") }
    let decoder = JSONDecoder()
    var migrated = 0
    for record in records {
      guard let value = record.value, let number = Int(record.key.text) else { return (0, "no number") }
      let original = OldPlace(id: number, title: "place \(number)", count: number * 3)
      if record.schemaVersion == 2 {
        migrated += 1
        guard try decoder.decode(Place.self, from: value) == Place(original) else { return (0, "\(number) is wrong at version 2") }
      } else {
        let found = try decoder.decode(OldPlace.self, from: value)
        guard record.schemaVersion == 1, found.count == original.count, found.title == original.title else {
          return (0, "\(number) is wrong at version \(record.schemaVersion)")
        }
      }
    }
    return (migrated, nil)
  }
}
