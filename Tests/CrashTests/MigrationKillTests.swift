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

@Suite("A migration that is killed", .serialized, .timeLimit(.minutes(Torture.isOn ? 60 : 4))) struct MigrationKillTests {
  /// The number of kills of each backend's migration; `LARDER_KILLS` sets another number.
  private var kills: Int { ProcessInfo.processInfo.environment["LARDER_KILLS"].flatMap(Int.init) ?? Torture.count(5, full: 10) }
  /// The number of records; `LARDER_RECORDS` sets another number.
  private var count: Int { ProcessInfo.processInfo.environment["LARDER_RECORDS"].flatMap(Int.init) ?? Torture.count(2_500, full: 5_000) }
  private var seed: UInt64 { ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max) }

  /// Kills the process at random moments of a rewrite, until it has been killed often enough; a store that it completes meanwhile is put
  /// back to where it was before.
  @Test(arguments: DiskBackend.allCases) func alwaysCompletesLaterWithEveryRecordMigratedOnce(_ kind: DiskBackend) async throws {
    let (seed, count, kills) = (seed, count, kills)
    print("LARDER_SEED=\(seed) (the kills' moments do not replay exactly)")
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let name = "places.\(kind.rawValue)"
    let file = directory.url.appendingPathComponent(name)
    let old = try await LocalRepository<OldPlace>(backend: kind.backend(file), schema: .init("places"))
    try await old.save(contentsOf: (0..<count).map { OldPlace(id: $0, title: "place \($0)", count: $0 * 3) })
    try await old.close()
    let pristine = try directory.copy(except: file.lastPathComponent + "-lock")

    var (killed, rounds, resumed) = (0, 0, 0)
    var current = try pristine.copy()
    let batches = (count + 255) / 256
    // Where the kills fall depends on the machine: it goes on until one has fallen amid the rewrite.
    while killed < kills || (resumed == 0 && killed < 20 * kills) {
      let process = try WriterProcess("migrate", current.url.appendingPathComponent(name).path)
      // Before it is open, while it makes the copy, or after some of its batches.
      var linesLeft = Int(random.next() % UInt64(max(batches / 4, 3)))
      var last: Substring?
      while linesLeft > 0, let line = process.nextLine() {
        last = line
        linesLeft -= 1
      }
      let pause = random.next() % 4_000
      for _ in 0..<pause { _ = random.next() }  // not always right behind a batch
      process.kill()
      while let line = process.nextLine() {
        last = line
        try #require(!line.hasPrefix("failed"), "kill \(killed): \(line)")
      }
      process.waitUntilExit()
      try #require(last?.hasPrefix("failed") != true, "kill \(killed): \(last ?? "")")
      killed += 1
      if killed % 10 == 0 { print("\(kind): killed \(killed) times, last after: \(last ?? "nothing")") }
      let (migrated, problem) = try await look(at: current.copy(), kind, name, count)
      try #require(problem == nil, "kill \(killed): \(problem ?? "")")
      if migrated > 0, migrated < count { resumed += 1 }
      if migrated == count {
        rounds += 1
        current = try pristine.copy()
      }
    }
    let process = try WriterProcess("migrate", current.url.appendingPathComponent(name).path)
    var last: Substring?
    while let line = process.nextLine() {
      try #require(!line.hasPrefix("failed"), "\(line)")
      last = line
    }
    process.waitUntilExit()
    #expect(last?.hasPrefix("finished") == true)
    let (migrated, problem) = try await look(at: current, kind, name, count)
    #expect(problem == nil)
    #expect(migrated == count)
    // One copy was made before the first rewrite, however often a run was killed, and it is what the old version left.
    let names = try FileManager.default.contentsOfDirectory(atPath: current.url.path).sorted()
    #expect(names == [name, "\(name)-before-places-v2"])
    let copy = current.url.appendingPathComponent("\(name)-before-places-v2")
    let before = try await LocalRepository<OldPlace>(backend: kind.backend(copy), schema: .init("places"))
    #expect(try await before.loadAll().allSatisfy { $0.count == $0.id * 3 })
    #expect(try await before.count() == count)
    try await before.close()
    print("\(kind): \(count) records, \(killed) kills, \(resumed) of them amid the rewrite, \(rounds + 1) migrations completed, each once")
    #expect(resumed > 0)
  }

  /// Runs that are killed while they copy, or right behind it, go on with one copy, which is what the old version left.
  @Test func runsThatShareTheStoreLeaveOneCopyHoweverOftenTheyAreKilled() async throws {
    let seed = seed
    print("LARDER_SEED=\(seed) (the kills' moments do not replay exactly)")
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("places.sqlite")
    let old = try await LocalRepository<OldPlace>(sqliteFile: file, schema: .init("places"))
    try await old.save(contentsOf: (0..<count).map { OldPlace(id: $0, title: "place \($0)", count: $0 * 3) })
    try await old.close()
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
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.url.path).sorted()
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
