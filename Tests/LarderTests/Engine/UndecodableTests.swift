import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Records that do not decode: no call that looks harmless deletes them, and what counts agrees with what reads.
@Suite(.timeLimit(.minutes(15))) struct UndecodableTests {
  struct Old: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var text: String?
  }
  struct New: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var text: String
  }

  /// A store of four records, of which two do not decode.
  private func mixed() async throws -> LocalRepository<New> {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(contentsOf: [Old(id: 1, text: "a"), Old(id: 2), Old(id: 3, text: "c"), Old(id: 4)])
    try await old.close()
    return try await LocalRepository<New>(backend: backend, schema: .init(indexes: [.ordered(\.text)]))
  }

  @Test func replacingAllByAllThatWasReadLosesNothing() async throws {
    let items = try await mixed()
    let error = await #expect(throws: RepositoryError.self) { try await items.replaceAll(with: try await items.loadAll()) }
    #expect(error?.code == .decodingFailed)
    #expect(error?.message.contains("2 of 4 records") == true)
    #expect(items.snapshot.count == 4)
    #expect(items.snapshot.undecodable.map(\.key.text) == ["2", "4"])
    try await items.save(New(id: 2, text: "mended"))
    #expect(await code { try await items.replaceAll(with: []) } == .decodingFailed)
    try await items.replaceAll(with: [New(id: 1, text: "only")], discardingUndecodable: true)
    #expect(items.snapshot.count == 1)
    try await items.replaceAll(with: [])
    #expect(items.snapshot.count == 0)
    try await items.close()
  }

  @Test func strictReadsRefuseWhatOthersLeaveOut() async throws {
    let items = try await mixed()
    #expect(try await items.loadAll().map(\.id) == [1, 3])
    #expect(try await items.loadAll(strict: false).map(\.id) == [1, 3])
    #expect(await code { _ = try await items.loadAll(strict: true) } == .decodingFailed)
    #expect(try await items.fetch(Query().filter { $0.text == "a" }).map(\.id) == [1])
    #expect(await code { _ = try await items.fetch(Query().filter { $0.text == "a" }.strict()) } == .decodingFailed)
    #expect(await code { _ = try items.snapshot.loadAll(strict: true) } == .decodingFailed)
    #expect(try items.snapshot.loadAll(strict: false).count == 2)
    #expect(await code { try await items.transaction { _ = try $0.loadAll(in: items, strict: true) } } == .decodingFailed)
    try await items.save(contentsOf: [New(id: 2, text: "b"), New(id: 4, text: "d")])
    #expect(try await items.loadAll(strict: true).count == 4)
    #expect(try await items.fetch(Query().filter { $0.text == "a" }.strict()).map(\.id) == [1])
    #expect(try items.snapshot.loadAll(strict: true).count == 4)
    #expect(try await items.transaction { try $0.loadAll(in: items, strict: true).count } == 4)
    try await items.close()
  }

  @Test func everyAnswerToAStrictQueryRefusesWhatOthersLeaveOut() async throws {
    let items = try await mixed()
    let queries: [Query<New>] = [
      Query(), Query().limit(1), Query().limit(0), Query().sorted(by: \.text), Query().where(#Predicate { $0.text == "a" }),
      Query().where(#Predicate { $0.text > "a" && $0.id > 0 }), Query().filter { $0.text == "a" },
    ]
    for query in queries {
      let answers = try await answers(to: query, of: items)
      let strict = query.strict()
      for (name, read) in answers where name != "page" || query.shape.maximum == nil {
        #expect(await code { try await read(query) } == nil, "\(name)")
        #expect(await code { try await read(strict) } == .decodingFailed, "\(name)")
      }
      #expect(items.explain(strict).access == .refused)
    }
    #expect(await code { _ = try await items.delete(where: Query().strict()) } == .decodingFailed)
    #expect(items.snapshot.count == 4)
    let error = await #expect(throws: RepositoryError.self) { _ = try await items.first(Query().strict()) }
    let keys = items.snapshot.undecodable.map { "\($0.key)" }
    #expect(error?.message.contains("2 of 4 records do not decode: \(keys[0]), \(keys[1]);") == true)

    try await items.save(contentsOf: [New(id: 2, text: "b"), New(id: 4, text: "d")])
    for query in queries {
      for (name, read) in try await answers(to: query, of: items) where name != "page" || query.shape.maximum == nil {
        #expect(await code { try await read(query.strict()) } == nil, "\(name)")
      }
      let plain = try await items.fetch(query)
      let strict = try await items.fetch(query.strict())
      #expect(plain == strict)
      #expect(items.explain(query.strict()).access == items.explain(query).access)
    }
    #expect(try await items.delete(where: Query().strict()) == 4)
    try await items.close()
  }

  private typealias Read = @Sendable (Query<New>) async throws -> Void

  /// All calls that answer a query, by name.
  private func answers(to query: Query<New>, of items: LocalRepository<New>) async throws -> [(String, Read)] {
    [
      ("fetch", { _ = try await items.fetch($0) }), ("first", { _ = try await items.first($0) }),
      ("count", { _ = try await items.count($0) }), ("matches", { _ = try await items.matches($0) }),
      ("page", { _ = try await items.page($0, limit: 2) }), ("grouped", { _ = try await items.grouped(by: \.text, $0) }),
      ("min", { _ = try await items.min(of: \.text, in: $0) }), ("max", { _ = try await items.max(of: \.text, in: $0) }),
      ("snapshot.fetch", { _ = try items.snapshot.fetch($0) }), ("snapshot.first", { _ = try items.snapshot.first($0) }),
      ("snapshot.count", { _ = try items.snapshot.count($0) }),
      ("transaction.fetch", { query in try await items.transaction { _ = try $0.fetch(query, in: items) } }),
      ("transaction.first", { query in try await items.transaction { _ = try $0.first(query, in: items) } }),
      ("transaction.count", { query in try await items.transaction { _ = try $0.count(query, in: items) } }),
      (
        "results",
        { query in
          var results = items.results(of: query).makeAsyncIterator()
          _ = try await results.next()
        }
      ),
    ]
  }

  @Test func manyKeysAreNotAllNamed() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(contentsOf: (0..<1_000).map { Old(id: $0) })
    try await old.close()
    let items = try await LocalRepository<New>(backend: backend)
    let error = await #expect(throws: RepositoryError.self) { _ = try await items.count(Query().strict()) }
    #expect(error?.message.contains("1000 of 1000 records") == true)
    #expect(error?.message.contains("and 992 more;") == true)
    try await items.close()
  }

  @Test func strictLiveResultsEndWhenARecordDoesNotDecode() async throws {
    let backend = InMemoryBackend()
    let items = try await LocalRepository(backend: backend, schema: RepositorySchema<New>("items", indexes: [.ordered(\.text)]))
    try await items.save(contentsOf: [New(id: 1, text: "a"), New(id: 2, text: "b")])
    for query in [Query<New>().sorted(by: \.text), Query().where(#Predicate { $0.text == "none" }), Query().filter { $0.id == 1 }] {
      var strict = items.results(of: query.strict()).makeAsyncIterator()
      let first = try await strict.next()
      #expect(try await items.fetch(query) == first)
      // Another program's record, which stays out of the other results.
      let alien = EncodedRecord(key: RecordKey("3"), schemaVersion: 1, value: Data(#"{"id":3}"#.utf8), decoded: nil)
      try await items.core.submit(.put(alien, in: items.collection))
      await #expect(throws: RepositoryError.self) { _ = try await strict.next() }
      #expect(try await strict.next() == nil)
      try await items.delete(3)
    }
    try await items.close()
  }

  @Test func aReferenceToAReadMeansTheOneWithoutChoices() async throws {
    let items = try await mixed()
    let loadAll = items.loadAll
    let fetch = items.fetch
    let first = items.first
    let count = items.count
    let load: () async throws(RepositoryError) -> [New] = items.loadAll
    let loadStrictly = items.loadAll(strict:)
    let loadSnapshot = items.snapshot.loadAll
    #expect(try await loadAll().count == 2)
    #expect(try await load().count == 2)
    #expect(try await fetch(Query()).count == 2)
    #expect(try await first(Query())?.id == 1)
    #expect(try await count(Query()) == 2)
    #expect(loadSnapshot().count == 2)
    #expect(await code { _ = try await loadStrictly(true) } == .decodingFailed)
    try await items.close()
  }

  @Test func countsAgreeWithWhatIsRead() async throws {
    let items = try await mixed()
    let queries: [Query<New>] = [
      Query(), Query().limit(1), Query().limit(3), Query().offset(1), Query().offset(3), Query().sorted(by: \.text),
      Query().filter { $0.text > "a" },
      Query().filter { $0.id > 0 },
    ]
    for query in queries {
      let count = try await items.fetch(query).count
      #expect(try await items.count(query) == count)
      #expect(try items.snapshot.count(query) == count)
      #expect(try await items.transaction { try $0.count(query, in: items) } == count)
    }
    #expect(try await items.count() == 2)
    #expect(items.snapshot.count == 4)
    #expect(try await items.transaction { try $0.count(in: items) } == 2)
    try await items.delete(2)
    try await items.save(New(id: 5, text: "e"))
    #expect(try await items.count() == 3)
    #expect(await code { _ = try await items.count(Query().limit(-1)) } == .unsupported)
    try await items.close()
    #expect(await code { _ = try await items.count() } == .closed)
  }

  @Test func manyRecordsAreCountedAwayFromTheCaller() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(contentsOf: (0..<2_000).map { Old(id: $0, text: $0 % 10 == 0 ? nil : "x") })
    try await old.close()
    let items = try await LocalRepository<New>(backend: backend)
    #expect(try await items.count() == 1_800)
    #expect(try await items.count() == items.loadAll().count)
    try await items.close()
  }

  @Test func aCountLooksAgainOnlyAtWhatMayNotDecode() async throws {
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(contentsOf: (0..<2_000).map { Old(id: $0, text: $0 % 1_000 == 7 ? nil : "x") })
    try await old.close()
    let items = try await LocalRepository<New>(backend: backend)
    // A record that is written over before anything was read stays unread in what was opened.
    try await items.save(New(id: 1, text: "y"))
    let before = items.snapshot
    #expect(try await items.count() == 1_998)
    #expect(try await items.count() == 1_998)
    #expect(items.snapshot.records.doubtfulCount <= 4)
    try await items.save(New(id: 7, text: "mended"))
    try await items.delete(8)
    #expect(try await items.count() == 1_998)
    #expect(try before.count(Query()) == 1_998)
    try await items.delete(1_007)
    #expect(try await items.count() == items.loadAll().count)
    #expect(try await items.count() == items.snapshot.count)
    #expect(try before.count(Query()) == before.loadAll().count)
    try await items.close()
  }

  @Test func aCountInATransactionLooksOnlyAtWhatWasWrittenSince() async throws {
    let backend = InMemoryBackend()
    let items = try await LocalRepository<New>(backend: backend)
    try await items.save(contentsOf: (0..<3_000).map { New(id: $0, text: "x") })
    let doubts = try await items.transaction { transaction in
      var doubts: [Int] = []
      for id in 3_000..<3_020 {
        try transaction.save(New(id: id, text: "y"), in: items)
        #expect(try transaction.count(in: items) == id + 1)
        doubts.append(try transaction.snapshot(of: items).records.doubtfulCount)
      }
      return doubts
    }
    // At first all; then what the last count has decoded, and the new one.
    #expect(doubts.dropFirst().allSatisfy { $0 <= 2 }, "\(doubts)")
    let before = items.snapshot
    try await items.save(New(id: 1, text: "z"))
    try await items.delete(2)
    #expect(before.records.doubtfulCount <= 2)
    #expect(try await items.count() == 3_019)
    #expect(try before.count(Query()) == 3_020)
    let alien = EncodedRecord(key: RecordKey("3"), schemaVersion: 1, value: Data(#"{"id":3}"#.utf8), decoded: nil)
    try await items.core.submit(.put(alien, in: items.collection))
    for _ in 0..<3 { #expect(try await items.count() == 3_018) }
    #expect(try before.count(Query()) == 3_020)
    try await items.delete(3)
    #expect(try await items.count() == 3_018)
    #expect(items.snapshot.records.doubtfulCount == 0)
    try await items.close()
  }

  @Test func replacingAllIsAWitnessOfAProtocolOfTheCallers() async throws {
    let items = try await LocalRepository(inMemory: RepositorySchema<New>("items"))
    let store: any Replaceable<New> = items
    try await store.replaceAll(with: [New(id: 1, text: "a")])
    #expect(items.snapshot.count == 1)
  }

  @Test func recordsThatAMigrationFailedForAreInTheSameList() async throws {
    struct Stop: Error {}
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(contentsOf: [Old(id: 1, text: "a"), Old(id: 2), Old(id: 3, text: "c")])
    try await old.close()
    let schema = RepositorySchema<New>(
      version: 2,
      migrations: [
        .init(from: 1, Old.self, to: New.self) { old in
          guard let text = old.text else { throw Stop() }
          return New(id: old.id, text: text)
        }
      ])
    let items = try await LocalRepository<New>(backend: backend, schema: schema, options: StoreOptions(migration: .init(mode: .eager)))
    #expect(items.migrationProgress.phase == .finished)
    #expect(items.migrationProgress.failureCount == 1)
    #expect(items.snapshot.undecodable.map(\.key.text) == ["2"])
    #expect(items.snapshot.undecodable.map(\.error.code) == [.migrationFailed])
    #expect(try await items.count() == 2)
    #expect(await code { try await items.replaceAll(with: try await items.loadAll()) } == .decodingFailed)
    #expect(await code { _ = try await items.loadAll(strict: true) } == .decodingFailed)
    try await items.close()
  }
}

/// The requests that a program may make of its own stores.
private protocol Replaceable<Element>: Sendable {
  associatedtype Element: Sendable
  func replaceAll(with items: [Element]) async throws
}
extension LocalRepository: Replaceable {
  typealias Element = Item
}
