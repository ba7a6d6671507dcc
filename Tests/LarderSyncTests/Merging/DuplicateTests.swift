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

  private func device(
    _ backend: InMemoryBackend = InMemoryBackend(), pageSize: Int = 1_000, indexes: [RepositoryIndex<Account>] = [.unique(\.mail)]
  ) async throws -> Device {
    let store = try await Store.open(backend)
    let schema = RepositorySchema<Account>("accounts", indexes: indexes).synced(in: "user/1", merge: .fields())
    let accounts = try await store.repository(schema)
    return Device(
      store: store, accounts: accounts,
      sync: try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"], pageSize: pageSize))
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

  /// A page has the newest state of a record, and the next one that of the record that it has taken a value from.
  @Test func whatIsEqualBetweenTwoPagesAloneIsNotTold() async throws {
    let (here, there) = (try await device(), try await device(pageSize: 1))
    for (id, mail) in [("a", "1"), ("b", "2")] { try await here.accounts.save(Account(id: id, mail: mail)) }
    try await exchange(here, there)
    for (id, mail) in [("a", "3"), ("b", "1"), ("a", "4")] { try await here.accounts.update(id) { $0.mail = mail } }
    try await exchange(here)
    try await here.accounts.update("a") { $0.mail = "5" }
    try await exchange(here, there)
    #expect(try await there.accounts.loadAll().map(\.mail) == ["5", "1"])
    #expect(try await there.sync.conflicts.count() == 0)
  }

  /// The last page of a full pass deletes what it has not seen.
  @Test func whatIsEqualUntilAPassEndsIsNotTold() async throws {
    let (here, there) = (try await device(), try await device(pageSize: 1))
    try await here.accounts.save(Account(id: "a", mail: "1"))
    try await exchange(here, there)
    try await here.accounts.delete("a")
    try await exchange(here)
    #expect(server.purge("user/1") == 1)
    for (id, mail) in [("b", "1"), ("c", "2")] {
      try await here.accounts.save(Account(id: id, mail: mail))
      try await exchange(here)
    }
    try await exchange(there)
    #expect(try await there.accounts.loadAll().map(\.id) == ["b", "c"])
    #expect(try await there.sync.conflicts.count() == 0)
  }

  /// What was told goes when the records are not equal any more; of three, two may still be.
  @Test func whatIsEqualNoMoreIsWithdrawn() async throws {
    let (here, there) = (try await device(), try await device())
    let third = try await device()
    for (device, id) in [(here, "a"), (there, "b"), (third, "c")] { try await device.accounts.save(Account(id: id, mail: "x")) }
    try await exchange(here, there, third, here)
    #expect(Set(try await here.sync.conflicts.loadAll().map(\.recordID)) == ["b", "c"])
    try await third.accounts.delete("a")
    try await exchange(third, here)
    let left = try await here.sync.conflicts.loadAll()
    #expect(left.count == 1 && Set(left.flatMap { [$0.recordID, $0.duplicateOf] }) == ["b", "c"])
    try await third.accounts.update("c") { $0.mail = "z" }
    try await exchange(third, here)
    #expect(try await here.sync.conflicts.count() == 0)
  }

  /// A conflict of one unique index stays when its record meets another one that a conflict of another index lists.
  @Test func aConflictIsKeptBesideOneOfAnotherIndex() async throws {
    let indexes: [RepositoryIndex<Account>] = [.unique(\.mail), .unique(\.name)]
    let (here, there) = (try await device(indexes: indexes), try await device(indexes: indexes))
    let third = try await device(indexes: indexes)
    try await here.accounts.save(Account(id: "a", mail: "x", name: "n"))
    try await there.accounts.save(Account(id: "b", mail: "y", name: "n"))
    try await third.accounts.save(Account(id: "c", mail: "y", name: "n"))
    try await exchange(here, there, here, third, here)
    func told() async throws -> Set<[String?]> {
      Set(try await here.sync.conflicts.loadAll().map { [$0.recordID, $0.duplicateOf, $0.index] })
    }
    #expect(try await told() == [["b", "a", "unique(name)"], ["c", "b", "unique(mail)"]])
    try await third.accounts.delete("a")
    try await exchange(third, here)
    #expect(try await told() == [["b", "c", "unique(name)"], ["c", "b", "unique(mail)"]])
  }

  /// The conflict of the new pair is stored in the same commit that ends the old pair.
  @Test func aPairThatAPageChangesIsToldOnce() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.accounts.save(Account(id: "b", mail: "x"))
    try await here.accounts.save(Account(id: "c", mail: "z"))
    try await there.accounts.save(Account(id: "a", mail: "x"))
    try await exchange(there, here)
    #expect(try await here.sync.conflicts.loadAll().map { [$0.recordID, $0.duplicateOf] } == [["a", "b"]])
    try await there.accounts.update("a") { $0.mail = "z" }
    try await exchange(there, here)
    let told = try await here.sync.conflicts.loadAll().map { [$0.recordID, $0.duplicateOf] }
    #expect(told == [["a", "c"]])
  }

  /// Of a value that has lost, `conflicts` holds the only copy.
  @Test func duplicatesPushNoLostValueOut() async throws {
    let (here, there) = (try await device(), try await device())
    try await there.accounts.save(Account(id: "lost", mail: "l"))
    try await exchange(there, here)
    try await here.accounts.update("lost") { $0.name = "here" }
    try await there.accounts.update("lost") { $0.name = "there" }
    try await exchange(here, there)
    #expect(try await there.sync.conflicts.loadAll().map(\.recordID) == ["lost"])
    let numbers = 0...SyncEngine.conflictLimit
    try await there.accounts.save(contentsOf: numbers.map { Account(id: "t\($0)", mail: "\($0)") })
    try await here.accounts.save(contentsOf: numbers.map { Account(id: "h\($0)", mail: "\($0)") })
    try await exchange(here, there, there)
    let kept = try await there.sync.conflicts.loadAll()
    #expect(kept.count == SyncEngine.conflictLimit && kept.contains { $0.recordID == "lost" && !$0.lost.isEmpty })
  }

  /// Conflicts that an app of an earlier version has stored name no duplicate.
  @Test func conflictsFromBeforeAreRead() throws {
    let json =
      #"{"id":"E621E1F8-C36C-495A-93FC-0C247A3E6E5F","scope":"s","collection":"c","recordID":"r","lost":{},"isLocal":true,"date":0}"#
    let conflict = try JSONDecoder().decode(SyncConflict.self, from: Data(json.utf8))
    #expect(conflict.duplicateOf == nil && conflict.index == nil)
  }
}
