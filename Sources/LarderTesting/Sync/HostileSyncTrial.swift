internal import Foundation
internal import Larder
@_spi(Simulation) internal import LarderSync

/// A device that syncs with a ``HostileSyncServer``, and the records that are none of the server's business.
///
/// They are in a collection that is not synced, in one that no repository reads, and in a scope that the engine does not have. None of
/// their bytes may leave or change, whatever the server says, and the store must open again.
struct HostileSyncTrial {
  /// A record, synced or not.
  struct Note: Codable, Identifiable, Sendable, Equatable {
    var id: String
    var scope = "user/1"
    var text = ""
    var count = 0
  }

  /// A promise that did not hold.
  struct Breach: Error, CustomStringConvertible {
    let description: String
  }

  /// The text of every record that must stay on the device.
  private static let secret = "SECRET"
  private static let hidden = [
    "private": [Note(id: "diary", text: secret), Note(id: "a", text: secret)],
    "attic": [Note(id: "box", text: secret)],
    "notes": [Note(id: "theirs", scope: "user/2", text: secret), Note(id: "early", scope: "user/2", text: secret)],
  ]
  private static let targets =
    hidden.flatMap { name, notes in notes.map { RecordAddress(collection: name, key: RecordKey($0.id)) } }
    + ["a", "b", "c"].map { RecordAddress(collection: "notes", key: RecordKey($0)) }
    + ["larder.sync.records", "larder.sync.scopes", "larder.sync.rejected"].map {
      RecordAddress(collection: $0, key: RecordKey("notes/theirs"))
    }

  private static var synced: RepositorySchema<Note> {
    RepositorySchema<Note>("notes").synced(in: { $0.scope }, merge: .fields(counters: [\.count]))
  }

  /// Runs a device against a server that lies.
  ///
  /// - Parameters:
  ///   - choices: The source of everything that is random.
  ///   - rounds: The number of exchanges, each behind some edits.
  ///   - backend: Makes a backend on the store's place.
  /// - Throws: ``Breach``.
  static func run(
    choices: any RandomNumberGenerator & Sendable, rounds: Int, backend: () throws -> any StorageBackend
  ) async throws {
    var choices = choices
    try await prepare(backend())
    let server = HostileSyncServer(choices: choices, targets: targets.sorted())
    for round in 0..<rounds {
      let store = try await Store.open(backend())
      let notes = try await store.repository(synced)
      let diary = try await store.repository(RepositorySchema<Note>("private"))
      let engine = try await SyncEngine(store, transport: server, scopes: ["user/1"])
      for id in ["a", "b", "c"] where Bool.random(using: &choices) {
        if Int.random(in: 0..<4, using: &choices) == 0 {
          try await notes.delete(id)
        } else {
          // What the server has planted may be of another scope, or no note: the edit is refused then.
          do throws(RepositoryError) { try await notes.save(Note(id: id, text: "round \(round)", count: round)) } catch {
            guard [.unsupported, .newerSchema].contains(error.code) else { throw error }
          }
        }
      }
      server.answer(40)
      do { try await engine.exchange(scopesAtOnce: 1) } catch let error as RepositoryError {
        throw Breach(description: "round \(round): the exchange fails in the store: \(error)")
      } catch is SyncProblem {
      } catch is CancellationError {
      }
      guard try await diary.loadAll() == hidden["private"]?.sorted(by: { $0.id < $1.id }) else {
        throw Breach(description: "round \(round): a collection that is not synced has changed")
      }
      guard server.received.range(of: Data(secret.utf8)) == nil else {
        throw Breach(description: "round \(round): a record that is not of the scope was sent")
      }
      try await store.close()
    }
    try await judge(backend())
  }

  /// Makes the store, with some notes that were there before the collection was synced.
  private static func prepare(_ backend: any StorageBackend) async throws {
    let store = try await Store.open(backend)
    for (name, notes) in hidden {
      let early = notes.filter { $0.id != "theirs" }
      try await store.repository(RepositorySchema<Note>(name)).save(contentsOf: early)
    }
    try await store.close()
    let again = try await Store.open(backend)
    try await again.repository(synced).save(Note(id: "theirs", scope: "user/2", text: secret))
    try await again.close()
  }

  private static func judge(_ backend: any StorageBackend) async throws {
    let store = try await Store.open(backend)
    for (name, notes) in hidden {
      let repository = try await store.repository(name == "notes" ? synced : RepositorySchema<Note>(name))
      for note in notes {
        guard try await repository.find(by: note.id) == note else { throw Breach(description: "\(name)/\(note.id) has changed or is gone") }
      }
    }
    guard await store.verify().isSound else { throw Breach(description: "the store is not sound") }
    try await store.close()
  }
}
