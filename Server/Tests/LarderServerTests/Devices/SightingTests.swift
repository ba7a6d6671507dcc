import Foundation
import LarderSync
import Testing

@testable import LarderServer

/// Who has read what: what a server notes of the devices that ask, and shows to its operator.
@Suite(.timeLimit(.minutes(15))) struct SightingTests {
  private static func sighting(
    _ device: String, in scope: String = "a", of owner: String = "ann", at time: Int = 1, position: Int = 0
  ) -> DeviceSighting {
    DeviceSighting(scope: scope, device: device, owner: owner, seenAt: time, history: "h", position: position)
  }

  /// Stores sightings of the store's own history.
  private static func note(_ sightings: [DeviceSighting], most: Int, in store: SQLSyncStore) async throws {
    let history = try await store.history()
    try await store.note(
      sightings.map { sighting in
        var sighting = sighting
        sighting.history = history
        return sighting
      }, most: most)
  }

  // MARK: In the database

  @Test(arguments: TestDatabase.available) func devicesThatReadAndDevicesThatPushAreListed(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open(now: { 5_000 })
    _ = try await store.push(onePush(device: "both"), to: "a", by: "ann")
    _ = try await store.push(onePush(device: "pen", id: "b"), to: "a", by: "bob")
    var full = Self.sighting("both", at: 9_000, position: 1)
    (full.pending, full.app) = (3, "2.4.1")
    // A scope without commits has nothing to read, and no row.
    try await Self.note([full, Self.sighting("reader", of: "eve"), Self.sighting("x", in: "none")], most: 9, in: store)
    // Another process may have seen the device later.
    try await Self.note([Self.sighting("both", at: 8_999, position: 0)], most: 9, in: store)
    let devices = try await store.devices()
    #expect(
      devices == [
        SeenDevice(identity: "ann", scope: "a", device: "both", seenAt: 9_000, position: 1, head: 2, pending: 3, app: "2.4.1"),
        SeenDevice(identity: "bob", scope: "a", device: "pen", seenAt: 5_000, head: 2),
        SeenDevice(identity: "eve", scope: "a", device: "reader", seenAt: 1, position: 0, head: 2),
      ])
    #expect(devices.map(\.behind) == [1, nil, 2])
    #expect(try await store.devices(identity: "eve").map(\.device) == ["reader"])
    #expect(try await store.devices(identity: "eve", scope: "b") == [])
    #expect(try await store.devices(scope: "a").count == 3)
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func namesThatCostNothingPushTheOldestOut(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    _ = try await store.push(onePush(), to: "a", by: "bob")
    // Several transactions; few statements where one in sixty fails.
    let last = kind == .disturbed ? 20 : 600
    try await Self.note((0..<last).map { Self.sighting("d\($0)", at: $0) }, most: 5, in: store)
    try await Self.note([Self.sighting("e", of: "eve")], most: 5, in: store)
    let found = try await store.devices().filter { $0.identity == "ann" }.map(\.seenAt)
    #expect(found.sorted() == Array(last - 5..<last))
    try await Self.note([Self.sighting("late", at: 1_000)], most: 5, in: store)
    let later = try await store.devices().filter { $0.identity == "ann" }.map(\.seenAt)
    #expect(later.sorted() == Array(last - 4..<last) + [1_000])
    #expect(try await store.devices(identity: "eve").count == 1)
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func sightingsAreForgottenAndMovedWithTheirDevices(on kind: TestDatabase) async throws {
    let day = 86_400_000
    let place = try await StorePlace.make(kind)
    let old = try await place.open(now: { 0 })
    for device in ["gone", "reads"] { _ = try await old.push(onePush(device: device, id: device), to: "a", by: "ann") }
    await old.close()
    let store = try await place.open(now: { 10 * day })
    let seen = [("gone", 0), ("reads", 9 * day), ("old", 0), ("new", 9 * day)].map { Self.sighting($0.0, at: $0.1) }
    try await Self.note(seen, most: 9, in: store)
    #expect(try await store.moveDevices(from: "ann", to: "anna") == 2)
    #expect(try await store.devices().allSatisfy { $0.identity == "anna" })
    // Two have not pushed for 10 days, of which one still reads, and one that has never pushed does not read any more.
    #expect(try await store.forgetDevices(DeviceSelection(identity: "anna", olderThanDays: 10)) == 3)
    #expect(try await store.devices().map(\.device) == ["new", "reads"])
    #expect(try await store.forgetDevices(DeviceSelection(identity: "anna", device: "new")) == 1)
    #expect(try await store.devices().map(\.position) == [0])
    #expect(try await store.doctor().findings == [])
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func lagsNameTheScopesThatAreMostBehind(on kind: TestDatabase) async throws {
    let day = 86_400_000
    let place = try await StorePlace.make(kind)
    let store = try await place.open(now: { 40 * day })
    for number in 0..<22 {
      for seq in 1...(number % 3 + 1) { _ = try await store.push(onePush(seq: seq, id: "r\(seq)"), to: "s\(number)", by: "ann") }
      try await Self.note([Self.sighting("d1", in: "s\(number)", at: 39 * day, position: number == 21 ? 1 : 0)], most: 99, in: store)
    }
    // A device that was not seen for a month is most likely gone.
    try await Self.note(
      [
        Self.sighting("gone", in: "s2", at: 10 * day), Self.sighting("d2", in: "s2", at: 39 * day, position: 2),
        Self.sighting("d3", in: "s2", at: 39 * day, position: 3),
      ], most: 99, in: store)
    let lags = try await store.lags()
    #expect(lags.seen == 24 && lags.scopesBehind == 21 && lags.worst.count == SQLSyncStore.mostLags)
    #expect(lags.worst.prefix(7).map(\.commits) == Array(repeating: 3, count: 7))
    #expect(lags.worst.first { $0.scope == "s2" } == DeviceLags.Scope(scope: "s2", devices: 2, commits: 3))
    await store.close()
  }

  /// Positions are of a history, and every device reads the next one from its beginning.
  @Test(arguments: TestDatabase.available) func nobodyHasReadAHistoryThatIsNew(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open(now: { 5_000 })
    for seq in 1...2 { _ = try await store.push(onePush(seq: seq, id: "r\(seq)"), to: "a", by: "ann") }
    try await Self.note([Self.sighting("d1", at: 9, position: 2), Self.sighting("reads", at: 9, position: 1)], most: 9, in: store)
    #expect(try await store.devices().map(\.behind) == [0, 1])
    #expect(try await store.lags().worst == [DeviceLags.Scope(scope: "a", devices: 1, commits: 1)])
    try await store.changeHistory()
    #expect(try await store.devices().map(\.position) == [0, 0])
    #expect(try await store.devices().map(\.behind) == [2, 2])
    #expect(try await store.lags().worst == [DeviceLags.Scope(scope: "a", devices: 2, commits: 2)])
    try await Self.note([Self.sighting("d1", at: 10, position: 2)], most: 9, in: store)
    #expect(try await store.devices().map(\.behind) == [0, 2])
    await store.close()
  }

  /// Unicode takes them for the same, and databases do not.
  @Test(arguments: TestDatabase.available) func namesAreToldApartByTheirBytes(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let names = ["\u{E9}", "e\u{301}"]
    for name in names { _ = try await store.push(onePush(), to: name, by: name) }
    let seen = names.flatMap { name in (1...3).map { Self.sighting("s\($0)", in: name, of: name, at: $0) } }
    try await Self.note(seen, most: 2, in: store)
    #expect(try await store.devices().map(\.device) == ["d1", "s2", "s3", "d1", "s2", "s3"])
    await store.close()
  }

  @Test(arguments: TestDatabase.available.filter { $0 != .disturbed }) func tablesOfVersion2AreTaken(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let old = try await place.open()
    _ = try await old.push(onePush(), to: "a", by: "ann")
    try await old.writers.perform { (connection) throws(StoreError) in
      try connection.execute("DROP TABLE larder_sightings")
      try connection.execute("ALTER TABLE larder_devices DROP COLUMN receipt_bytes")
      try connection.execute("UPDATE larder_meta SET version = 2")
    }
    await old.close()
    let store = try await place.open()
    #expect(try await store.devices().map(\.position) == [nil])
    try await Self.note([Self.sighting("d1", at: 1, position: 1)], most: 9, in: store)
    #expect(try await store.devices().map(\.behind) == [0])
    await store.close()
  }

  // MARK: Over HTTP

  @Test func aServerNotesWhoAsksAndWhatTheySay() async throws {
    let directory = try TemporaryDirectory()
    let changes = "/v1/scopes/user%2F42/changes?"
    try await TestServer.run(in: directory) { server in
      #expect(try await server.push(onePush()).status == 200)
      let long = String(repeating: "x", count: 100)
      let questions = [
        // A device of an earlier version says neither; a server of an earlier one ignores both, as this one does what it does not know.
        "device=old&since=0", "device=new&since=0&pending=7&app=2.4.1%20(57)", "device=next&since=0&next=%1B&pending=0",
        "device=long&since=1&app=%1B%5B2J\(long)", "device=empty&since=0&app=%07",
      ]
      for question in questions {
        let status = try await server.send("GET", changes + question).status
        #expect(status == 200, "\(question)")
      }
      for pending in ["-1", "9007199254740992", "x", "1.5"] {
        let status = try await server.send("GET", "\(changes)device=bad&pending=\(pending)").status
        #expect(status == 400, "\(pending)")
      }
      // A device of another identity is refused, and does not count as seen by that.
      #expect(try await server.send("GET", "\(changes)device=d1", token: TestTokens.bob).status == 403)
    }
    let store = try await SQLSyncStore.open(sqlite: directory.file("store.sqlite"), logger: LogLines().logger())
    let devices = try await store.devices()
    #expect(devices.map(\.device) == ["d1", "empty", "long", "new", "next", "old"])
    #expect(devices.map(\.pending) == [nil, nil, nil, 7, 0, nil])
    #expect(devices.map(\.app) == [nil, nil, "[2J" + String(repeating: "x", count: 61), "2.4.1 (57)", nil, nil])
    #expect(devices.map(\.position) == [nil, 1, 1, 1, 1, 1])
    #expect(devices.allSatisfy { $0.identity == "ann" && $0.head == 1 })
    await store.close()
  }

  @Test func theNumbersNameScopesThatAreBehind() async throws {
    // A quotation mark and a backslash with a combining mark are characters of their own, and are escaped no less.
    let scope = "team/\u{1B}[2J\"\\u{1B}\n\"\u{301}\\\u{301}"
    let directory = try TemporaryDirectory()
    let store = try await SQLSyncStore.open(sqlite: directory.file("store.sqlite"), logger: LogLines().logger())
    _ = try await store.push(onePush(), to: scope, by: "ann")
    try await Self.note([Self.sighting("d1", in: scope, at: SQLSyncStore.systemClock())], most: 9, in: store)
    await store.close()
    try await TestServer.run(in: directory) { server in
      // A server looks when it begins, and then from time to time.
      while try await server.number("larder_devices_seen") != 1 {}
      #expect(try await server.number("larder_scopes_behind") == 1)
      let label = #"{scope="team/\\u{1B}[2J\"\\\\u{1B}\\n\"\#u{301}\\\\\#u{301}"}"#
      for name in ["larder_devices_behind", "larder_commits_behind"] { #expect(try await server.number(name + label) == 1) }
    }
  }

  // MARK: The command

  @Test func theCommandShowsWhoIsBehind() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let server = try await ServerProcess.start("sqlite:\(path)")
    var transport = try server.transport()
    transport.appVersion = "2.4.1\u{1B}"
    _ = try await transport.push(onePush(), to: "a")
    _ = try await transport.push(onePush(seq: 2, id: "b"), to: "a")
    for (device, since, limit, pending) in [("slow\u{7}", 0, 1, 0), ("d1", 2, 9, 2), ("done", 2, 9, 0)] {
      var question = SyncChangesRequest(device: device, since: since, limit: limit)
      question.pending = pending
      _ = try await transport.changes(question, in: "a")
    }
    #expect(await server.end() == 0)
    func list(_ arguments: String...) async throws -> String {
      try await ServerProcess.run("sqlite:\(path)", ["devices", "list"] + arguments)
        .replacing(/seen [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/, with: "seen TIME")
    }
    let identity = "anyone\t1\t2\t26\n"
    let current = "\ta\td1\tseen TIME\tread 2 of 2\tbehind 0\tpending 2\tapp 2.4.1\n"
    let slow = "\ta\tslow\\u{07}\tseen TIME\tread 1 of 2\tbehind 1\tpending 0\tapp 2.4.1\n"
    let done = "\ta\tdone\tseen TIME\tread 2 of 2\tbehind 0\tpending 0\tapp 2.4.1\n"
    #expect(try await list() == identity + current + done + slow)
    #expect(try await list("--behind") == identity + current + slow)
    #expect(try await list("--scope", "b") == "")
    #expect(try await list("--identity", "anyone", "--scope", "a") == identity + current + done + slow)
    _ = try await ServerProcess.run("sqlite:\(path)", ["devices", "forget", "--days", "0", "--device", "slow\u{7}"])
    #expect(try await list() == identity + current + done)
  }

  @Test func theCommandListsIdentitiesByTheirBytes() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let store = try await SQLSyncStore.open(sqlite: path, logger: LogLines().logger())
    for name in ["\u{E9}", "e\u{301}"] { _ = try await store.push(onePush(), to: name, by: name) }
    await store.close()
    let found = try await ServerProcess.run("sqlite:\(path)", ["devices", "list"])
    #expect(found.utf8.split(separator: UInt8(ascii: "\n")).count == 4)
    let one = try await ServerProcess.run("sqlite:\(path)", ["devices", "list", "--identity", "e\u{301}"])
    #expect(one.utf8.split(separator: UInt8(ascii: "\n")).count == 2)
  }
}
