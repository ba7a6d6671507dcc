import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Records that do not decode: no call that looks harmless deletes them, and what counts agrees with what reads.
@Suite(.timeLimit(.minutes(10))) struct UndecodableTests {
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
    #expect(try await items.fetch(Query().filter { $0.text == "a" }, strict: false).map(\.id) == [1])
    #expect(await code { _ = try await items.fetch(Query().filter { $0.text == "a" }, strict: true) } == .decodingFailed)
    #expect(await code { _ = try items.snapshot.loadAll(strict: true) } == .decodingFailed)
    #expect(try items.snapshot.loadAll(strict: false).count == 2)
    #expect(await code { try await items.transaction { _ = try $0.loadAll(in: items, strict: true) } } == .decodingFailed)
    try await items.save(contentsOf: [New(id: 2, text: "b"), New(id: 4, text: "d")])
    #expect(try await items.loadAll(strict: true).count == 4)
    #expect(try await items.fetch(Query().filter { $0.text == "a" }, strict: true).map(\.id) == [1])
    #expect(try items.snapshot.loadAll(strict: true).count == 4)
    #expect(try await items.transaction { try $0.loadAll(in: items, strict: true).count } == 4)
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

/// What a program may ask of its own stores.
private protocol Replaceable<Element>: Sendable {
  associatedtype Element: Sendable
  func replaceAll(with items: [Element]) async throws
}
extension LocalRepository: Replaceable {
  typealias Element = Item
}
