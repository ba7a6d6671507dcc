import Foundation
import Larder
import LarderBlobs
import LarderSQLite
import LarderTesting

/// Stores that are opened, used a little and closed, and some that are dropped without closing.
enum Opening {
  /// Without the timer that folds a journal when writing pauses: it goes on for some seconds after a store was closed, with a queue.
  private static let buffered = StoreOptions(durability: .buffered, checkpoint: .init(idle: nil, bySize: true))

  static let scenarios = [
    Scenario("open and close, in memory") { _ in
      Subject { number in
        let jars = try await LocalRepository<Jar>(inMemory: .init(), options: buffered)
        try await jars.save(Jar(number))
        try await jars.close()
      }
    },
    Scenario("open and close, JSON", weight: 2) { place in
      Subject { number in
        let jars = try await LocalRepository<Jar>(jsonFile: place.file("jars.json"), schema: Jar.schema, options: buffered)
        try expect(try await jars.count() == (number == 0 ? 0 : 1), "what was saved before")
        if number % 10 == 0 { try await jars.save(Jar(1, use: number)) }
        try await jars.close()
      }
    },
    Scenario("open and close, SQLite", weight: 2) { place in
      Subject { number in
        let jars = try await LocalRepository<Jar>(sqliteFile: place.file("jars.sqlite"), schema: Jar.schema, options: buffered)
        try expect(try await jars.count() == (number == 0 ? 0 : 1), "what was saved before")
        if number % 10 == 0 { try await jars.save(Jar(1, use: number)) }
        try await jars.close()
      }
    },
    // Whoever forgets to close gets memory and descriptors back nevertheless.
    Scenario("open and drop, SQLite", weight: 10) { place in
      let before = try Consumption.descriptorCount()
      return Subject { number in
        do {
          let jars = try await LocalRepository<Jar>(sqliteFile: place.file("jars\(number % 50).sqlite"), options: buffered)
          try await jars.save(Jar(1, use: number))
        }
      } settle: {
        // The last one closes on a thread of its own, which a busy machine may keep waiting. It has five descriptors; what stays open for
        // longer is what is looked for.
        let end = ContinuousClock.now + .seconds(10)
        while try Consumption.descriptorCount() > before + 3, ContinuousClock.now < end { await Task.yield() }
      }
    },
    Scenario("refused opening", weight: 10) { place in
      let jars = try await LocalRepository<Jar>(jsonFile: place.file("jars.json"), options: buffered)
      return Subject { _ in
        do {
          _ = try await LocalRepository<Jar>(jsonFile: place.file("jars.json"))
          throw WrongAnswer(description: "expected a refusal")
        } catch RepositoryError.Code.alreadyOpen {}
      } end: {
        try await jars.close()
      }
    },
    Scenario("open with everything, and close", weight: 10) { place in
      Subject { number in
        let store = try await Store.open(JSONFileBackend(file: place.file("jars.json")), options: buffered)
        let jars = try await store.repository(Jar.schema)
        var changes = jars.changes().makeAsyncIterator()
        var results = jars.results(of: Query().limit(2)).makeAsyncIterator()
        try expect(try await results.next() != nil, "results")
        // One of the two that the query gives: other records do not change its result.
        try await jars.save(Jar(number % 2, use: number))
        try expect(try await changes.next()?.changes.count == 1, "a change")
        try expect(try await results.next()?.isEmpty == false, "results")
        try expect(await store.verify().isSound, "a sound store")
        try await store.close()
        try expect(try await changes.next() == nil, "the end")
      }
    },
    // A closed store's timer keeps some 700 bytes for five seconds.
    Scenario("open and close blobs", weight: 10, bytes: 2 << 20) { place in
      Subject { number in
        let blobs = try await BlobStore(directory: place.directory.appendingPathComponent("blobs"))
        if number == 0 { try await blobs.save(Data([1, 2, 3]), for: "a") }
        try expect(try await blobs.blob(for: "a")?.data.count == 3, "the blob")
        try await blobs.close()
      }
    },
    Scenario("open and close cache", weight: 10) { place in
      Subject { number in
        let cache = try await CachedRepository<Int, Jar>.open(
          jsonFile: place.file("cache.json"), freshness: .init(fresh: .seconds(60), usable: .hours(1)),
          source: ScriptedSource<Int, Jar> { key, _ in .value(Jar(key)) })
        try expect(try await cache.value(for: 3).value.id == 3, "jar 3")
        try await cache.close()
      }
    },
  ]
}
