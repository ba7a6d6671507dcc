import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// A main file of many pieces reads as one: records across the bounds of pieces, longer than pieces, and damage anywhere.
@Suite(.timeLimit(.minutes(15))) struct MainFilePieceTests {
  private struct Note: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var text: String
  }

  private static func notes(_ random: inout SeededGenerator) -> [Note] {
    // About 4 MiB: some records beyond the size of a piece, and many small ones around them.
    (0..<300).map { id in
      let count = id % 97 == 5 ? 5_000_000 / (1 + id / 97) : Int.random(in: 0...20_000, using: &random)
      return Note(id: id, text: String(repeating: ["a", "é", "\"", "\\n", "{"][id % 5], count: count / 4))
    }
  }

  @Test func everyRecordComesBackAndDamageIsFound() async throws {
    let seed = Seeds.list(1, for: "main file pieces")[0]
    var random = SeededGenerator(seed)
    let files = SimulatedFileSystem()
    let url = URL(fileURLWithPath: "/data/notes.json")
    let notes = Self.notes(&random)
    func open() async throws -> LocalRepository<Note> {
      try await LocalRepository<Note>(backend: JSONFileBackend(file: url, fileSystem: files))
    }
    let first = try await open()
    try await first.save(contentsOf: notes)
    try await first.checkpoint()
    try await first.close()
    let second = try await open()
    #expect(Set(try await second.loadAll()) == Set(notes), "LARDER_SEED=\(seed)")
    #expect(second.openReport.recordCount == notes.count)
    try await second.close()

    let file = try #require(try files.open(url.path, writable: true))
    let size = try file.size()
    #expect(size > 3 << 20)
    for _ in 0..<5 {
      let offset = Int.random(in: 0..<size, using: &random)
      let old = try file.read(at: offset, count: 1)
      try Data([old[old.startIndex] ^ 0x04]).withUnsafeBytes { try file.write($0, at: offset) }
      let error = await #expect(throws: RepositoryError.self, "LARDER_SEED=\(seed): \(offset)") { try await open() }
      #expect([.corrupted, .newerSchema].contains(error?.code), "LARDER_SEED=\(seed): \(offset)")
      try old.withUnsafeBytes { try file.write($0, at: offset) }
    }
    let third = try await open()
    #expect(third.openReport.recordCount == notes.count)
    try await third.close()
    try file.cut(to: size - size / 3)
    #expect(await code { _ = try await open() } == .corrupted)
  }

  /// A file that counts what is read of it.
  private final class CountingFile: ForwardingFile {
    let base: any OpenFile
    let readCount = Mutex(0)
    init(_ base: any OpenFile) { self.base = base }
    func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
      readCount.withLock { $0 += 1 }
      return try base.read(at: offset, count: count)
    }
  }

  @Test func aDamagedPartEndsReading() async throws {
    let files = SimulatedFileSystem()
    let url = URL(fileURLWithPath: "/data/notes.json")
    let store = try await LocalRepository<Note>(backend: JSONFileBackend(file: url, fileSystem: files))
    let partSize = 128
    let notes = (0..<10 * MainFileReader.batchCount).map { Note(id: $0, text: String(repeating: "x", count: $0 % 200)) }
    try await store.save(contentsOf: notes)
    try await store.close()

    let file = CountingFile(try #require(try files.open(url.path, writable: true)))
    func read() throws -> [String] {
      var keys: [String] = []
      file.readCount.withLock { $0 = 0 }
      _ = try MainFileReader(source: .file(file), file: url.path, partSize: partSize).read { packs, _ in
        for pack in packs { pack.forEach { keys.append($0.key.text) } }
      } begin: { _ in
        [:]
      }
      return keys
    }
    let keys = try read()
    #expect(Set(keys) == Set(notes.map { "\($0.id)" }) && keys.count == notes.count)
    #expect(file.readCount.withLock { $0 } > 5 * MainFileReader.batchCount)

    let start = try #require(try file.read(at: 0, count: 4_096).firstIndex(of: 0x0A)) + 1
    try Data("?".utf8).withUnsafeBytes { try file.write($0, at: start + 10) }
    #expect(throws: RepositoryError.self) { _ = try read() }
    // A part is read twice where its last line ends far behind it.
    #expect(file.readCount.withLock { $0 } <= 2 * MainFileReader.batchCount)
  }
}
