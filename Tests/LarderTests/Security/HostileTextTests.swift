import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// Ids, collections and file names that an attacker chooses.
@Suite("Security: hostile ids and names", .timeLimit(.minutes(15))) struct HostileTextTests {
  private struct Note: Codable, Identifiable, Sendable {
    let id: String
    var number: Int
  }

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static let pieces = [
    "\0", "../", "..", "/", "\\", "\n", "\r\n", "\u{85}", "\u{2028}", "\u{202E}", "\u{200F}", "\u{200D}", "\u{FEFF}", "\u{FFFF}",
    "\u{10FFFF}", "\u{D7FF}", "\u{E000}", "caf\u{E9}", "cafe\u{301}", "\u{212B}", "\u{C5}", "\"", "'", "';DROP TABLE notes;--",
    "\",\"rev\":9,\"x\":\"",
    "}", "]", "{", "[", "\\u0000", "\\ud800", "%00", "%2F", "$(id)", "`id`", "a", "A", "0", "1e9", "null", " ", "\t", "\u{1B}[31m",
    "\u{7F}", "-", "ß", "İ",
  ]

  @Test(arguments: [TestBackend.json, .sqlite]) func tenThousandIdsComeBackAsTheyWere(_ store: TestBackend) async throws {
    var random = SeededGenerator(Seeds.list(1, for: "tenThousandIdsComeBackAsTheyWere")[0])
    var notes: [Data: Note] = [:]
    for piece in [""] + Self.pieces { notes[Data(piece.utf8)] = Note(id: piece, number: notes.count) }
    while notes.count < 10_000 {
      let count = random.chance(2) ? random.int(100..<400) : random.int(1..<7)
      let id = (0..<count).map { _ in
        Self.pieces[random.int(0..<Self.pieces.count)]
      }.joined()
      if id.utf8.count <= 1_024 { notes[Data(id.utf8)] = Note(id: id, number: notes.count) }
    }
    let schema = RepositorySchema<Note>("notes")
    for turn in 0..<2 {
      let repository = try await LocalRepository(backend: store.backend(directory.file("notes")), schema: schema)
      if turn == 0 { try await repository.save(contentsOf: notes.values) }
      let found = Dictionary(uniqueKeysWithValues: try await repository.loadAll(strict: true).map { (Data($0.id.utf8), $0.number) })
      #expect(found == notes.mapValues(\.number))
      for (id, note) in notes.prefix(500) {
        let one = try await repository.find(by: String(decoding: id, as: UTF8.self))
        #expect(one?.number == note.number)
      }
      try await repository.close()
    }
    #expect(try directory.names == ["notes"])
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func anIdOfAMebibyteIsRefusedAndNothingIsWritten(_ store: TestBackend) async throws {
    let repository = try await LocalRepository<Note>(backend: store.backend(directory.file("notes")), schema: .init("notes"))
    for id in [String(repeating: "k", count: 1 << 20), String(repeating: "\u{202E}", count: 342), String(repeating: "\0", count: 1_025)] {
      let found = await code { try await repository.save(Note(id: id, number: 1)) }
      #expect(found == .invalidKey)
    }
    #expect(repository.snapshot.count == 0)
    try await repository.close()
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func aCollectionIsNoPathAndNoStatement(_ store: TestBackend) async throws {
    let hostile =
      Self.pieces.filter { !["a", "A", "0", "1e9", "null", "-", ".."].contains($0) } + ["", String(repeating: "n", count: 1 << 20)]
    let file = directory.file("notes")
    for name in hostile {
      let found = await code { _ = try await LocalRepository<Note>(backend: store.backend(file), schema: .init(name)) }
      #expect(found == .unsupported, "\(name.prefix(20).debugDescription)")
    }
    #expect(try directory.names.allSatisfy { $0 == "notes" })
  }

  @Test func aFileNameIsOneComponent() async throws {
    for name in ["", ".", "..", "/", "a/b", "../a", "/etc/passwd", "a\0b", "..\u{2F}a", "a/", "\0"] {
      let found = await code { _ = try await LocalRepository<Note>(filename: name) }
      #expect(found == .unsupported, "\(name.debugDescription)")
    }
  }
}
