import Foundation
import Larder
import LarderSQLite
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(10)))
struct CacheHealingTests {
  private typealias Cache = CachedRepository<String, Int>

  @Test func aDamagedDatabaseOfACacheIsMovedAsideAndReported() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-tests-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appendingPathComponent("cache.db", isDirectory: false)
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
