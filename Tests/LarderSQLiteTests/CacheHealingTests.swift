import Foundation
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CacheHealingTests {
  private typealias Cache = CachedRepository<String, Int>

  @Test func aDamagedDatabaseOfACacheIsMovedAsideAndReported() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.db")
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let freshness = FreshnessPolicy(fresh: .seconds(60), usable: .hours(1))

    let first = try await Cache.open(file: file) { SQLiteBackend(file: $0) }
    #expect(first.healing == nil)
    await Cache(storage: first.storage, freshness: freshness, source: source).prefetch((0..<200).map { "key \($0)" })
    try await first.storage.close()

    var bytes = try Data(contentsOf: file)
    for index in 4_096..<bytes.count { bytes[index] = 0x5A }  // every page but the first
    try bytes.write(to: file)
    let second = try await Cache.open(file: file) { SQLiteBackend(file: $0) }
    let healing = try #require(second.healing)
    #expect(healing.error.code == .corrupted)
    #expect(healing.movedFiles.contains(file.path + "-damaged"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + "-damaged")) == bytes)
    let cache = Cache(storage: second.storage, freshness: freshness, source: source)
    #expect(try await cache.value(for: "four").value == 4)
    try await second.storage.close()
  }

  /// A torn write of an earlier run has left a quarantine file, beside which a missing main file is never taken for a new store.
  @Test(arguments: [true, false]) func aCacheWithAQuarantineFileIsHealed(isGone: Bool) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    let first = try await Cache.open(jsonFile: file)
    try await first.storage.close()
    try Data("torn".utf8).write(to: directory.file("cache.json-quarantine-1-64"))
    if isGone { try FileManager.default.removeItem(at: file) } else { try Data("{\"format\":\"larder\"".utf8).write(to: file) }
    let second = try await Cache.open(jsonFile: file)
    #expect(second.healing?.movedFiles.contains { $0.hasSuffix("cache.json-quarantine-1-64-damaged") } == true)
    try await second.storage.close()
    let third = try await Cache.open(jsonFile: file)
    #expect(third.healing == nil)
    try await third.storage.close()
  }

  /// Healing that was killed between two of its renames is finished by the next opening.
  @Test func healingThatWasCutShortIsFinished() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    for name in ["cache.json-journal", "cache.json-previous"] { try Data("left".utf8).write(to: directory.file(name)) }
    let opened = try await Cache.open(jsonFile: file)
    #expect(opened.healing?.error.code == .dataMissing)
    try await opened.storage.close()
    let aside = try directory.names.filter { $0.hasSuffix("-damaged") }
    #expect(aside.sorted() == ["cache.json-journal-damaged", "cache.json-previous-damaged"])
  }

  @Test func aCacheOpensInOneCallAndHealsItself() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-tests-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appendingPathComponent("cache.db", isDirectory: false)
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let freshness = FreshnessPolicy(fresh: .seconds(60), usable: .hours(1))

    let first = try await CachedRepository.open(sqliteFile: file, freshness: freshness, source: source)
    #expect(try await first.value(for: "four").origin == .remote)
    #expect(first.healing == nil)
    await first.prefetch((0..<200).map { "key \($0)" })
    try await first.close()
    let second = try await CachedRepository.open(sqliteFile: file, freshness: freshness, source: source)
    #expect(try await second.value(for: "four").origin == .disk)
    try await second.close()
    var bytes = try Data(contentsOf: file)
    for index in 4_096..<bytes.count { bytes[index] = 0x5A }  // every page but the first
    try bytes.write(to: file)
    let third = try await CachedRepository.open(sqliteFile: file, freshness: freshness, source: source)
    #expect(third.healing?.error.code == .corrupted)
    #expect(try await third.value(for: "four").origin == .remote)
    try await third.close()
  }
}
