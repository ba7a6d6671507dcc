import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// Stores that earlier versions wrote open and read the same; how they were made is in Fixtures/format-1/README.md.
@Suite(.timeLimit(.minutes(15))) struct FormatFixtureTests {
  private struct Pier: Codable, Identifiable, Sendable {
    let id: Int
    var name: String
    var country: String
    var depth: Double
    var tags: [String]
  }

  private struct Visit: Codable, Identifiable, Sendable {
    let id: String
    var pier: Int
    var note: String?
  }

  @Test(arguments: FormatFixture.names) func aStoreOfFormat1ReadsTheSame(_ name: String) async throws {
    let directory = try TemporaryDirectory()
    let expected = try FormatFixture.copy(name, to: directory.url)
    let file = directory.url.appending(path: name)
    // The second round reads what the first has recovered and closed, after one more write.
    #expect(try await listing(file, adding: "new") == lines(expected))
    let second = try await listing(file, adding: nil).dropFirst().filter { !$0.contains(#""id":"new""#) }
    #expect(second == Array(lines(expected).dropFirst()))
  }

  @Test(arguments: FormatFixture.names) func readingAStoreOfFormat1BesideItsWriterChangesNothing(_ name: String) async throws {
    let directory = try TemporaryDirectory()
    let expected = try FormatFixture.copy(name, to: directory.url)
    let before = try directory.contents()
    let found = try await listing(directory.url.appending(path: name), adding: nil, .readOnly)
    #expect(found.dropFirst() == lines(expected).dropFirst())
    #expect(try directory.contents().filter { !$0.key.hasSuffix("-shm") } == before)
  }

  private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

  private func listing(_ file: URL, adding id: String?, _ access: StoreOptions.Access? = nil) async throws -> [String] {
    let access = access ?? (file.lastPathComponent == "shared.sqlite" ? .shared : .exclusive)
    let store = try await Store.open(FormatFixture.backend(file), options: StoreOptions(access: access))
    let piers = try await store.repository(RepositorySchema<Pier>("piers", version: 3))
    let visits = try await store.repository(RepositorySchema<Visit>("visits"))
    let report = store.openReport
    var lines = ["commit \(report.commit) records \(report.recordCount) cut \(report.cutTail != nil)"]
    for item in try await piers.loadAll() { lines.append(try line("piers", piers.revision(of: item.id), item)) }
    for item in try await visits.loadAll() { lines.append(try line("visits", visits.revision(of: item.id), item)) }
    if let id { try await visits.save(Visit(id: id, pier: 0, note: nil)) }
    #expect(await store.verify().problems.isEmpty)
    try await store.close()
    return lines
  }

  private func line(_ collection: String, _ revision: Revision?, _ item: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let text = String(decoding: try encoder.encode(item), as: UTF8.self)
    return "\(collection) \(try #require(revision)) \(text)"
  }
}
