import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Account: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var mail: String
  var name = ""
}

/// Records of several devices that a unique index finds equal are told as soon as they meet.
@Suite struct DuplicateTests {
  private let server = SimulatedSyncServer()

  private struct Device {
    let store: Store
    let accounts: LocalRepository<Account>
    let sync: SyncEngine
  }

  private func device(_ backend: InMemoryBackend = InMemoryBackend()) async throws -> Device {
    let store = try await Store.open(backend)
    let schema = RepositorySchema<Account>("accounts", indexes: [.unique(\.mail)]).synced(in: "user/1", merge: .fields())
    let accounts = try await store.repository(schema)
    return Device(
      store: store, accounts: accounts,
      sync: try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"]))
  }

  private func exchange(_ devices: Device...) async throws { for device in devices { try await device.sync.exchange() } }

  @Test func aRecordThatArrivesBesideItsLikeIsTold() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.accounts.save(Account(id: "a", mail: "ann@x"))
    try await there.accounts.save(Account(id: "b", mail: "ann@x"))
    try await there.accounts.save(Account(id: "c", mail: "eve@x"))
    try await exchange(here, there, here)
    for (device, id, other) in [(here, "b", "a"), (there, "a", "b")] {
      #expect(try await device.accounts.count() == 3)
      let found = try await device.sync.conflicts.loadAll()
      #expect(found.map(\.recordID) == [id] && found.map(\.duplicateOf) == [other])
      let conflict = try #require(found.first)
      #expect(conflict.collection == "accounts" && conflict.scope == "user/1" && conflict.lost.isEmpty && !conflict.isLocal)
      #expect(conflict.index == "unique(mail)")
      #expect(device.sync.status.current.conflicts == 1)
      #expect(try await device.sync.state(of: id, in: device.accounts) == .conflict(found))
    }
    // What was told is not told again: by an edit of another member, or by the store when it is opened.
    try await there.accounts.update("b") { $0.name = "Ann" }
    try await exchange(there, here)
    #expect(try await here.sync.conflicts.count() == 1)
    // Others that meet later are.
    for conflict in try await there.sync.conflicts.loadAll() { try await there.sync.conflicts.delete(conflict.id) }
    try await here.accounts.update("a") { $0.mail = "eve3@x" }
    try await there.accounts.update("c") { $0.mail = "eve3@x" }
    try await exchange(here, there)
    #expect(try await there.sync.conflicts.loadAll().map(\.duplicateOf) == ["c"])
  }

  /// A commit is judged as a whole: two records of it may exchange their values.
  @Test func recordsThatExchangeTheirValuesAreNoDuplicates() async throws {
    let (here, there) = (try await device(), try await device())
    for (id, mail) in [("a", "1"), ("b", "2")] { try await here.accounts.save(Account(id: id, mail: mail)) }
    try await exchange(here, there)
    try await here.accounts.transaction { [accounts = here.accounts] transaction in
      try transaction.save(Account(id: "a", mail: "2"), in: accounts)
      try transaction.save(Account(id: "b", mail: "1"), in: accounts)
    }
    try await exchange(here, there)
    #expect(try await there.accounts.find(by: "a")?.mail == "2")
    #expect(try await there.sync.conflicts.count() == 0)
  }

  @Test func bothRecordsOfAPageAreToldOnce() async throws {
    let devices = (try await device(), try await device(), try await device())
    try await devices.0.accounts.save(Account(id: "a", mail: "x"))
    try await devices.1.accounts.save(Account(id: "b", mail: "x"))
    try await exchange(devices.0, devices.1, devices.2)
    let found = try await devices.2.sync.conflicts.loadAll()
    #expect(found.count == 1)
    #expect(Set(found.flatMap { [$0.recordID, $0.duplicateOf] }) == ["a", "b"])
  }

  /// The server's value may meet another record when an edit is given up.
  @Test func aRevertedEditIsJudgedToo() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.accounts.save(Account(id: "a", mail: "1"))
    try await exchange(here, there)
    server.refuse { $0.id == "a" ? "no" : nil }
    try await here.accounts.update("a") { $0.mail = "2" }
    try await here.accounts.save(Account(id: "b", mail: "1"))
    try await exchange(here)
    #expect(try await here.sync.conflicts.count() == 0)
    for refusal in try await here.sync.rejected.loadAll() { try await here.sync.revert(refusal) }
    let found = try await here.sync.conflicts.loadAll()
    #expect(found.map(\.recordID) == ["a"] && found.first?.duplicateOf == "b" && found.first?.scope == "user/1")
  }

  /// Conflicts that an app of an earlier version has stored name no duplicate.
  @Test func conflictsFromBeforeAreRead() throws {
    let json =
      #"{"id":"E621E1F8-C36C-495A-93FC-0C247A3E6E5F","scope":"s","collection":"c","recordID":"r","lost":{},"isLocal":true,"date":0}"#
    let conflict = try JSONDecoder().decode(SyncConflict.self, from: Data(json.utf8))
    #expect(conflict.duplicateOf == nil && conflict.index == nil)
  }
}
