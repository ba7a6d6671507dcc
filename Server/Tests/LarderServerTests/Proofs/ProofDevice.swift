import Foundation
import Larder
import LarderSync
import LarderTesting

/// A note that devices share.
struct ProofNote: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
  var count = 0
}

/// A device with the real engine, a store in memory and a clock of its own.
struct ProofDevice: Sendable {
  private let store: Store
  private let scope: String
  let notes: LocalRepository<ProofNote>
  let sync: SyncEngine
  let clock: ManualClock

  init(_ base: String, scope: String = "user/42", years: Double = 0) async throws {
    clock = ManualClock(now: Date(timeIntervalSince1970: 1_767_225_600 + years * 31_557_600))
    (store, self.scope) = (try await Store.open(InMemoryBackend()), scope)
    notes = try await store.repository(
      RepositorySchema<ProofNote>("notes").synced(in: scope, merge: .fields(counters: [\.count]), clock: clock))
    sync = try await Self.engine(store, base, scope, clock)
  }

  private init(_ other: ProofDevice, _ sync: SyncEngine) {
    (store, scope, notes, clock, self.sync) = (other.store, other.scope, other.notes, other.clock, sync)
  }

  private static func engine(_ store: Store, _ base: String, _ scope: String, _ clock: ManualClock) async throws -> SyncEngine {
    guard let url = URL(string: base) else { throw URLError(.badURL) }
    return try await SyncEngine(store, transport: HTTPTransport(url) { nil }, scopes: [scope], clock: clock)
  }

  /// Returns the device with the store that it has, and a server at another address.
  func moved(to base: String) async throws -> ProofDevice { ProofDevice(self, try await Self.engine(store, base, scope, clock)) }

  func increment(_ id: String) async throws {
    try await notes.transaction { [notes] transaction in
      var note = try transaction.find(by: id, in: notes) ?? ProofNote(id: id)
      note.count += 1
      try transaction.save(note, in: notes)
    }
  }

  /// Exchanges over a network that may not be there.
  func tryExchange() async throws { do { try await sync.exchange() } catch is SyncProblem {} }

  /// Exchanges until that works, for a server that comes back.
  func exchange() async throws {
    let works = try await eventually(within: .seconds(120)) {
      do {
        try await sync.exchange()
        return true
      } catch let problem as SyncProblem where problem.status == 503 { return false }
    }
    if !works { throw SyncProblem.unreachable("the server did not come back") }
  }

  func all() async throws -> [ProofNote] { try await notes.loadAll().sorted { $0.id < $1.id } }
}
