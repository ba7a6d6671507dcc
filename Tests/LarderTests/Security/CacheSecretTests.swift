import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// A word that is in keys and values of a cache must be in no text that an app would log, and in no name of a file.
@Suite("Security: nothing private of a cache is printed", .timeLimit(.minutes(15))) struct CacheSecretTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test func noErrorOfACacheHoldsTheWord() async throws {
    let (canary, file) = ("hunter2-8c1f0d", directory.file("cache.json"))
    let source = ScriptedSource<String, String> { key, _ in .value(key) }
    func open() async throws(RepositoryError) -> CachedRepository<String, String> {
      try await .open(jsonFile: file, freshness: .init(fresh: .seconds(60), usable: .seconds(60)), retry: .never, source: source)
    }
    let cache = try await open()
    _ = try await cache.value(for: canary)
    let missed = await #expect(throws: CacheError.self) { _ = try await cache.value(for: canary + "2", policy: .cacheOnly) }
    #expect(!"\(String(describing: missed)) \(cache.statistics)".contains("hunter2"))
    try await cache.close()
    // Damage in the key itself: the file is set aside, and what is said of it names no key.
    var bytes = try Data(contentsOf: file)
    let place = try #require(bytes.range(of: Data(canary.utf8))).lowerBound
    bytes[place] ^= 1
    try bytes.write(to: file)
    let healed = try await open()
    let healing = try #require(healed.healing)
    #expect(!"\(healing) \(String(reflecting: healing)) \(healing.error.description)".contains("hunter2"))
    #expect(!"\(healing)".contains("unter2-8c1f0d"))
    try await healed.close()
    #expect(try directory.names.allSatisfy { !$0.contains("hunter2") })
  }
}
