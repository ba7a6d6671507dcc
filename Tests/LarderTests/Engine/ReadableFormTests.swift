import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

@testable import Larder

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// A backend that refuses nothing gets nothing that it could not read back.
@Suite struct ReadableFormTests {
  enum Kind: CaseIterable, Sendable {
    case memory, json, sqlite

    func backend(_ directory: TemporaryDirectory) -> any StorageBackend {
      switch self {
      case .memory: InMemoryBackend()
      case .json: JSONFileBackend(file: directory.file("s.json"))
      case .sqlite: SQLiteBackend(file: directory.file("s.sqlite"))
      }
    }
  }

  private static let unreadable: [(StoredValue, RepositoryError.Code)] =
    [0, -1, .min, 1 << 31, 1 << 53, .max].map { (StoredValue(schemaVersion: $0, json: Data("1".utf8)), .unsupported) }
    + ["", "\n", "[\n1]", "1\n"].map { (StoredValue(schemaVersion: 1, json: Data($0.utf8)), .encodingFailed) }

  @Test(arguments: Kind.allCases) func aValueThatCouldNotBeReadBackIsRefused(_ kind: Kind) async throws {
    let directory = try TemporaryDirectory(inMemory: true)
    let store = try await Store.open(kind.backend(directory))
    let notes = try await store.repository(RepositorySchema<Note>("notes"))
    let raw = store.collection(named: "raw")
    for (number, (value, code)) in Self.unreadable.enumerated() {
      for isKept in [true, false] {
        // The write is refused whole, and the one beside it is not.
        async let saved = notes.save(Note(id: "\(number) \(isKept)"))
        let found = await TestSupport.code {
          try await store.writeStored { (pending) throws(RepositoryError) in
            try pending.store(StoredValue(schemaVersion: 1, json: Data("2".utf8)), for: RecordKey("beside"), in: raw)
            if isKept {
              try pending.storeUnread(value, for: RecordKey("a"), in: raw)
            } else {
              try pending.store(value, for: RecordKey("a"), in: raw)
            }
          }
        }
        #expect(found == code)
        _ = try await saved
      }
    }
    try await store.writeStored { (pending) throws(RepositoryError) in
      for version in [1, Int(Int32.max)] {
        try pending.store(StoredValue(schemaVersion: version, json: Data("0".utf8)), for: RecordKey("of version \(version)"), in: raw)
      }
    }
    guard kind != .memory else { return }
    let killed = try directory.copy()
    try await store.close()
    for place in [killed, directory] {
      let again = try await Store.open(kind.backend(place))
      #expect(try await again.repository(RepositorySchema<Note>("notes")).count() == 2 * Self.unreadable.count)
      let position = again.collection(named: "raw")
      #expect(again.stored.count(in: position) == 2)
      #expect(try again.stored.stored(RecordKey("of version 2147483647"), in: position)?.schemaVersion == Int(Int32.max))
      #expect(await again.verify().isSound)
      try await again.close()
    }
  }
}
