import Foundation
import Larder
import LarderSQLite
import LarderSync

nonisolated struct Trip: Codable, Identifiable, Hashable, Sendable {
  let id: UUID
  var name: String
  var owner: String
  var visits = 0
  var tags: [String] = []

  static let schema = RepositorySchema<Trip>("trips")
}

func startingSync(file: URL, server: URL) async throws -> SyncEngine {
  let store = try await Store.open(SQLiteBackend(file: file))
  let trips = try await store.repository(
    Trip.schema.synced(in: "user/42", merge: .fields(counters: [\.visits], sets: [\.tags])))
  let sync = try await SyncEngine(store, server: server, scopes: ["user/42"], credentials: { try await token() })

  try await trips.save(Trip(id: UUID(), name: "Jogashima", owner: "42"))  // durable here, and sent when there is a network
  return sync
}

@MainActor func showing(_ sync: SyncEngine, on label: StatusLabel) async {
  for await status in sync.status {
    switch status.phase {
    case .exchanging: label.text = status.total.map { "\(status.pulled) of \($0)" } ?? "syncing"
    case .waiting: label.text = "\(status.pending) changes wait: \(status.lastError.map { "\($0)" } ?? "no network")"
    case .idle, .stopped:
      label.text = status.isSaved ? "everything is saved" : "\(status.pending) changes to send, \(status.rejected) refused"
    }
  }
}

func backgroundTask(_ sync: SyncEngine) async -> Bool {
  do {
    try await sync.exchange()  // every scope
    return true
  } catch {
    return false  // what was taken until then is kept
  }
}

func conflictsAndRefusals(_ sync: SyncEngine) async throws {
  for conflict in try await sync.conflicts.loadAll() {
    if let other = conflict.duplicateOf {
      print(conflict.recordID, other)  // two records under one value: let the user choose one
    } else {
      print(conflict.recordID, conflict.lost)  // ["name": "\"Jogashima pier\""]: offer it, then forget it
    }
    try await sync.conflicts.delete(conflict.id)
  }
  for refusal in try await sync.rejected.loadAll() {
    print(refusal.recordID, refusal.code, refusal.detail)
    try await sync.revert(refusal)  // or retry(_:), or let the user edit the record: it is sent again then
  }
}

func tellingTheVersion(_ store: Store, server: URL) async throws -> SyncEngine {
  var transport = HTTPTransport(server) { try await token() }
  transport.appVersion = "2.4.1"  // shown to the operator, and nothing else
  let sync = try await SyncEngine(store, transport: transport, scopes: ["user/42"])
  await sync.start()  // by itself from now on, as with SyncEngine(_:server:scopes:credentials:)
  return sync
}

func severalScopes(_ store: Store, server: URL) async throws -> SyncEngine {
  _ = try await store.repository(Trip.schema.synced(in: { "user/\($0.owner)" }, merge: .fields()))
  return try await SyncEngine(store, server: server, scopes: ["user/42", "user/43"], credentials: { try await token() })
}

func signingOut(_ sync: SyncEngine, confirm: (Int) async -> Bool) async throws {
  do {
    try await sync.signOut()
  } catch let unsent as SyncUnsentEdits {
    if await confirm(unsent.count) { try await sync.signOut(force: true) }
  }
}

@MainActor final class StatusLabel { var text = "" }

private func token() async throws -> String { "…" }
