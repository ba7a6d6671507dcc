import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Opening says when it finds a collection of which no record decodes, and decodes no more than it must to know.
@Suite("Collections of which nothing decodes", .timeLimit(.minutes(15)))
struct UndecodableCollectionTests {
  private struct Note: Codable, Identifiable { let id: UUID, text: String }
  private struct Text: Codable, Identifiable { let id: String, text: String }
  private struct Numbered: Codable, Identifiable { let id: Int, text: String }

  private static func store(_ keys: [String], value: (String) -> String) async throws -> Store {
    let backend = InMemoryBackend()
    _ = try backend.openAndRecover(.init()) { _ in }
    let records = keys.map {
      StoredRecord(collection: "notes", key: RecordKey($0), revision: Revision(1), schemaVersion: 1, value: Data(value($0).utf8))
    }
    if !records.isEmpty { try backend.commit(WriteBatch(records: records, commits: 1...1)) }
    try backend.close()
    return try await Store.open(backend)
  }

  private static func note(_ id: String) -> String { #"{"id":"\#(id)","text":"x"}"# }

  /// What another program writes that takes the text of an id for its key.
  @Test func keysInLowerCaseAreReported() async throws {
    let keys = (0..<100).map { _ in UUID().uuidString.lowercased() }.sorted()
    let store = try await Self.store(keys, value: Self.note)
    #expect(store.openReport.isClean)
    let notes = try await store.repository(RepositorySchema<Note>("notes"))
    let report = notes.openReport
    #expect(!report.isClean && report.undecodable.map(\.key.text).sorted() == keys)
    #expect(report.undecodable.allSatisfy { $0.error.code == .decodingFailed && $0.collection == "notes" })
    #expect(try await notes.count(Query()) == 0)
  }

  @Test func oneRecordThatDecodesIsEnough() async throws {
    let (lower, upper) = (UUID().uuidString.lowercased(), UUID().uuidString)
    let notes = try await Self.store([lower, upper].sorted(), value: Self.note).repository(RepositorySchema<Note>("notes"))
    #expect(notes.openReport.isClean)
    #expect(notes.snapshot.undecodable.map(\.key.text) == [lower])
  }

  @Test func aCollectionWithoutRecordsIsClean() async throws {
    #expect(try await Self.store([], value: Self.note).repository(RepositorySchema<Note>("notes")).openReport.isClean)
  }

  /// The number of records that were decoded.
  private final class Counted: Codable, Identifiable, Sendable {
    static let count = Mutex(0)
    let id: Int
    init(from decoder: any Decoder) throws {
      id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
      Self.count.withLock { $0 += 1 }
    }
    private enum CodingKeys: CodingKey { case id }
  }

  @Test func openingDecodesOneRecordOfMany() async throws {
    let store = try await Self.store((0..<5_000).map(String.init).sorted()) { #"{"id":\#($0)}"# }
    let counted = try await store.repository(RepositorySchema<Counted>("notes"))
    #expect(counted.openReport.isClean && Counted.count.withLock { $0 } == 1)
  }

  @Test func recordsOfAnotherTypeAreReportedAndReadAsTheirs() async throws {
    let store = try await Self.store(["a", "b"], value: Self.note)
    #expect(try await store.repository(RepositorySchema<Text>("notes")).openReport.isClean)
    let numbered = try await Self.store(["a", "b"], value: Self.note).repository(RepositorySchema<Numbered>("notes"))
    #expect(numbered.openReport.undecodable.count == 2 && !numbered.openReport.isClean)
    #expect(throws: RepositoryError.self) { try numbered.snapshot.undecodable.first.map { throw $0.error } }
  }
}
