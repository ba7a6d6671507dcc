import Foundation
import LarderWire
import Testing

@testable import LarderServer

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What one identity may store, and how much the server stores for a push.
@Suite(.timeLimit(.minutes(15))) struct QuotaTests {
  private static func text(_ count: Int) -> String { "\"\(String(repeating: "x", count: count - 2))\"" }

  // MARK: Conflicts

  /// 75 devices that lose against one record of 1 MiB would otherwise store it 75 times.
  @Test func aConflictStoresNoValue() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let store = try await SQLSyncStore.open(sqlite: path, logger: LogLines().logger())
    _ = try await store.push(onePush(value: Self.text(1 << 20)), to: "a", by: "ann")
    for number in 0..<75 {
      let reply = try await store.push(onePush(device: "fresh\(number)", value: "1"), to: "a", by: "ann").reply
      guard case .conflict(let records) = reply.receipt.outcomes.first else { throw Unexpected() }
      #expect(records.first?.value?.count == 1 << 20)
    }
    await store.close()
    var size = 0
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
      size += try FileManager.default.attributesOfItem(atPath: path + suffix)[.size] as? Int ?? 0
    }
    #expect(size < 3 << 20, "\(size) bytes")
  }

  private struct Unexpected: Error {}

  /// A repeated push, and a page, show a conflict's record as it is by then: also a purged one, and one that does not fit.
  @Test(arguments: TestDatabase.available) func aConflictIsAnsweredWithTheRecordAsItIs(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    _ = try await store.push(onePush(id: "changed"), to: "a", by: "ann")
    _ = try await store.push(onePush(seq: 2, id: "purged"), to: "a", by: "ann")
    var push = onePush(device: "d2")
    push.groups = ["changed", "purged", "never"].flatMap { onePush(id: $0, base: 9).groups }
    let history = try await store.push(push, to: "a", by: "ann").reply.history
    _ = try await store.push(onePush(seq: 3, id: "changed", base: 1, value: #"{"n":2}"#), to: "a", by: "ann")
    _ = try await store.push(onePush(seq: 4, id: "purged", base: 2, value: nil), to: "a", by: "ann")
    #expect(try await store.purge(olderThanDays: 0) >= 0)
    let again = try await store.push(push, to: "a", by: "ann").reply.receipt
    let found = again.outcomes.map { (outcome) -> [SyncRecord] in if case .conflict(let records) = outcome { records } else { [] } }
    #expect(found.map { $0.map(\.id) } == [["changed"], ["purged"], ["never"]])
    #expect(found.map { $0.first?.revision } == [3, 0, 0])
    #expect(found[0].first?.value == Data(#"{"n":2}"#.utf8))
    let page = try await store.changes(SyncChangesRequest(device: "d2", history: history, since: 3, from: 9), in: "a", by: "ann")
    #expect(page.last == again)
    await store.close()
  }

  /// Tables of the version before this one have receipts with values, and revisions without a size.
  @Test(arguments: TestDatabase.available.filter { $0 != .disturbed }) func tablesOfVersion1AreTaken(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let old = try await place.open()
    _ = try await old.push(onePush(), to: "a", by: "ann")
    let history = try await old.history()
    try await old.writers.perform { (connection) throws(StoreError) in
      try connection.execute("DROP TABLE larder_sightings")
      try connection.execute("ALTER TABLE larder_records DROP COLUMN size")
      for column in ["records", "bytes", "receipt_bytes"] { try connection.execute("ALTER TABLE larder_devices DROP COLUMN \(column)") }
      let receipt =
        #"{"outcomes":[{"conflict":[{"by":"x","id":"a","in":"spots","rev":9,"stamp":1,"value":{"n":7},"version":1}]}],"seq":1,"token":"t1"}"#
      try connection.execute(
        "INSERT INTO larder_devices (scope, device, owner, last_seq, last_token, outcome, stamp, seen_at) VALUES (?, ?, ?, 1, ?, ?, 1, 1)",
        [.text("a"), .text("d2"), .text("ann"), .text("t1"), .text(receipt)])
      try connection.execute("UPDATE larder_meta SET version = 1")
    }
    await old.close()
    let store = try await place.open()
    let page = try await store.changes(SyncChangesRequest(device: "d2", history: history, since: 0), in: "a", by: "ann")
    #expect(page.last?.outcomes == [.conflict(page.changes)])
    #expect(page.changes.first?.value == Data(#"{"n":1}"#.utf8))
    // The revision from before counts for nobody, and the one that overwrites it for its device.
    _ = try await store.push(onePush(seq: 2, base: 1, value: #"{"n":22}"#), to: "a", by: "ann")
    #expect(try await store.deviceOwners() == [DeviceOwner(identity: "ann", devices: 2, records: 1, bytes: 14)])
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  // MARK: Counts and limits

  @Test(arguments: TestDatabase.available) func recordsCountForTheirLastWriter(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    func usage() async throws -> [String: [Int]] {
      try await store.deviceOwners().reduce(into: [:]) { $0[$1.identity] = [$1.devices, $1.records, $1.bytes] }
    }
    _ = try await store.push(onePush(value: Self.text(100)), to: "a", by: "ann")
    #expect(try await usage() == ["ann": [1, 1, 106]])
    _ = try await store.push(onePush(device: "d2", base: 1, value: Self.text(50)), to: "a", by: "bob")
    #expect(try await usage() == ["ann": [1, 0, 0], "bob": [1, 1, 56]])
    // A tombstone counts until it is purged.
    _ = try await store.push(onePush(seq: 2, base: 2, value: nil), to: "a", by: "ann")
    #expect(try await usage() == ["ann": [1, 1, 6], "bob": [1, 0, 0]])
    #expect(try await store.doctor().findings == [])
    _ = try await store.purge(olderThanDays: 0)
    #expect(try await usage() == ["ann": [1, 0, 0], "bob": [1, 0, 0]])
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  /// Two names that Unicode takes for the same are two devices.
  @Test(arguments: TestDatabase.available) func namesOfDevicesAreComparedByTheirBytes(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    _ = try await store.push(onePush(device: "\u{E9}"), to: "a", by: "ann")
    _ = try await store.push(onePush(device: "e\u{301}", base: 1), to: "a", by: "bob")
    #expect(try await store.deviceOwners().map(\.records) == [0, 1])
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func aPushBeyondAQuotaStoresNothing(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let quota = IdentityQuota(records: 2, bytes: 1_000)
    func push(_ push: SyncPush, _ scope: String = "a", by owner: String = "ann") async throws -> SyncOutcome? {
      try await store.push(push, to: scope, by: owner, quota: quota).reply.receipt.outcomes.first
    }
    func expectRefusal(_ word: String, _ one: SyncPush, _ scope: String = "a", _ line: Int = #line) async throws {
      await #expect("line \(line)") {
        _ = try await push(one, scope)
      } throws: { error in
        if case SyncProblem.overQuota(let detail) = error { detail.contains(word) } else { false }
      }
    }
    #expect(try await push(onePush(value: Self.text(600))) == .accepted(1))
    try await expectRefusal("1000 bytes", onePush(seq: 2, id: "b", value: Self.text(600)))
    // Its other scopes and devices count with it; other identities do not.
    try await expectRefusal("1000 bytes", onePush(device: "d2", value: Self.text(600)), "b")
    #expect(try await push(onePush(device: "d3", value: Self.text(600)), "b", by: "bob") == .accepted(1))
    #expect(try await push(onePush(seq: 2, id: "b")) == .accepted(2))
    try await expectRefusal("2 records", onePush(seq: 3, id: "c"))
    // What stores no more is taken, also above a quota that was lowered: overwriting with less, by any device, and deletions.
    let low = IdentityQuota(records: 1, bytes: 100)
    let less = onePush(device: "d2", base: 1, value: Self.text(500))
    #expect(try await store.push(less, to: "a", by: "ann", quota: low).reply.receipt.outcomes == [.accepted(3)])
    let deletion = onePush(seq: 3, base: 3, value: nil)
    #expect(try await store.push(deletion, to: "a", by: "ann", quota: low).reply.receipt.outcomes == [.accepted(4)])
    #expect(try await push(onePush(seq: 4, id: "b", base: 2, value: Self.text(900))) == .accepted(5))
    // Also of another identity's record, and of one that counts for nobody.
    #expect(try await store.push(onePush(device: "d2", base: 1, value: nil), to: "b", by: "ann", quota: low).head == 2)
    #expect(try await store.forgetDevices(DeviceSelection(device: "d1")) == 1)
    #expect(try await store.push(onePush(device: "d2", seq: 2, id: "b", base: 5, value: nil), to: "a", by: "ann", quota: low).head == 6)
    // A push that was taken before is answered, however full it is by now.
    let again = onePush(device: "d2", seq: 2, id: "b", base: 5, value: nil)
    #expect(try await store.push(again, to: "a", by: "ann", quota: IdentityQuota(records: 0, bytes: 0)).head == 6)
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func freshNamesOfDevicesComeToAnEnd(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let quota = IdentityQuota(devices: 3)
    for number in 0..<3 { _ = try await store.push(onePush(device: "d\(number)"), to: "s\(number)", by: "ann", quota: quota) }
    await #expect { _ = try await store.push(onePush(device: "d3"), to: "s0", by: "ann", quota: quota) } throws: { error in
      if case SyncProblem.overQuota(let detail) = error { detail.contains("3 devices") } else { false }
    }
    // A device that is known goes on, and another identity begins.
    _ = try await store.push(onePush(device: "d2", seq: 2, id: "b"), to: "s2", by: "ann", quota: quota)
    _ = try await store.push(onePush(device: "d3"), to: "s0", by: "bob", quota: quota)
    await store.close()
  }

  /// A packed push of 6 KB would otherwise leave 3 MB of names in the row of each fresh device.
  @Test(arguments: TestDatabase.available) func theNamesInOutcomesCountForAQuota(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let quota = IdentityQuota(records: 100, bytes: 50_000)
    func conflicts(_ device: String, _ count: Int) -> SyncPush {
      var push = onePush(device: device)
      push.groups = (0..<count).flatMap { onePush(id: "\($0)" + String(repeating: "\u{1}", count: 1_000), base: 1, value: nil).groups }
      return push
    }
    let reply = try await store.push(conflicts("d1", 7), to: "a", by: "ann", quota: quota).reply
    // Seven names of 6,000 bytes each, of which 4 KiB are free.
    let counted = try await store.deviceOwners().first?.bytes ?? 0
    #expect((37_000..<50_000).contains(counted), "\(counted)")
    for (change, findings) in [("+ 1", ["1 outcomes of pushes have another size than their devices count"]), ("- 1", [])] {
      try await store.writers.perform { (connection) throws(StoreError) in
        try connection.execute("UPDATE larder_devices SET receipt_bytes = receipt_bytes \(change) WHERE device = 'd1'")
      }
      #expect(try await store.doctor().findings == findings)
    }
    await #expect {
      _ = try await store.push(conflicts("d2", 7), to: "a", by: "ann", quota: quota)
    } throws: { error in
      if case SyncProblem.overQuota(let detail) = error { detail.contains("50000 bytes") } else { false }
    }
    #expect(try await store.deviceOwners().map(\.devices) == [1])
    // A lost answer comes again, though its push would go beyond the quota now.
    let again = try await store.push(conflicts("d1", 7), to: "a", by: "ann", quota: IdentityQuota(bytes: 1)).reply
    #expect(again.receipt == reply.receipt)
    // A full identity still learns of a few conflicts, and deletes, which frees the bytes of the receipt before.
    let low = IdentityQuota(records: 100, bytes: 10)
    _ = try await store.push(onePush(device: "d2", id: "b"), to: "a", by: "bob")
    let few = try await store.push(onePush(device: "d3", id: "b"), to: "a", by: "ann", quota: low).reply.receipt.outcomes
    guard case .conflict = few.first else { throw Unexpected() }
    let deletion = onePush(device: "d1", seq: 2, id: "b", base: 1, value: nil)
    #expect(try await store.push(deletion, to: "a", by: "ann", quota: low).reply.receipt.outcomes == [.accepted(2)])
    #expect(try await store.deviceOwners().first?.bytes == 6)
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  // MARK: Forgetting devices

  @Test(arguments: TestDatabase.available) func aForgottenDeviceMakesRoomAndGoesOn(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let day = 86_400_000
    let old = try await place.open(now: { 0 })
    _ = try await old.push(onePush(), to: "a", by: "ann")
    _ = try await old.push(onePush(device: "d2"), to: "b", by: "bob")
    await old.close()
    let store = try await place.open(now: { 10 * day })
    _ = try await store.push(onePush(device: "d3", id: "c"), to: "a", by: "ann")
    #expect(try await store.forgetDevices(DeviceSelection(identity: "ann", olderThanDays: 11)) == 0)
    #expect(try await store.forgetDevices(DeviceSelection(identity: "ann", olderThanDays: 10)) == 1)
    #expect(try await store.deviceOwners().map(\.devices) == [1, 1])
    #expect(try await store.doctor().findings == [])
    // The device is told to begin anew, and what it wrote is there.
    await #expect(throws: SyncProblem.gap(last: 0)) { _ = try await store.push(onePush(seq: 2, id: "b"), to: "a", by: "ann") }
    _ = try await store.push(onePush(base: 1, value: #"{"n":2}"#), to: "a", by: "ann")
    #expect(try await store.doctor().findings == [])
    #expect(try await store.forgetDevices(DeviceSelection(scope: "b", device: "d1")) == 0)
    #expect(try await store.forgetDevices(DeviceSelection()) == 3)
    #expect(try await store.doctor() == StoreReport(scopes: 2, records: 3, tombstones: 0, devices: 0, findings: []))
    await store.close()
  }

  // MARK: Over HTTP

  @Test func aFullIdentityGets507AndOneWithManyStreams429() async throws {
    var options = ServerOptions()
    (options.bytesPerIdentity, options.streamsPerIdentity, options.streams) = (200, 2, 3)
    try await TestServer.run(options: options) { server in
      let full = try await server.push(onePush(value: Self.text(300)))
      #expect(full.status == 507)
      #expect(full.problem == .overQuota("Expected at most 200 bytes of the identity's records and outcomes, found 306 with this push."))
      #expect(try await server.push(onePush(value: Self.text(100))).status == 200)
      let events = "\(server.base)/v1/scopes/user%2F42/events"
      var open: [URLSessionTask] = []
      func openStream(_ token: String) async throws -> Bool {
        let (lines, task) = try EventReader.open(events, token: token)
        open.append(task)
        var isOpen = false
        for await line in lines where line.hasPrefix("data") {
          isOpen = true
          break
        }
        return isOpen
      }
      for _ in 0..<2 { #expect(try await openStream(TestTokens.ann)) }
      let refused = try await server.send("GET", "/v1/scopes/user%2F42/events")
      #expect(refused.status == 429)
      #expect(refused.headers["retry-after"] == "5")
      // A long poll is one more, too; a question that does not wait is none.
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=1&wait=5").status == 429)
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=1").status == 200)
      // Others still have their streams, until all are taken.
      #expect(try await openStream(TestTokens.bob))
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/events", token: TestTokens.bob).status == 503)
      open[0].cancel()
      // The server learns a little later that the client is gone.
      while try await !openStream(TestTokens.ann) {}
      for task in open { task.cancel() }
    }
  }
}
