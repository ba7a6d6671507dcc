import Foundation
import LarderTesting
import LarderWire
import Logging
import Synchronization
import Testing

@testable import LarderServer

@Suite struct StoreConformanceTests {
  /// Random pushes, questions, purges and rules: the store answers as the server in memory does.
  @Test(arguments: TestDatabase.available, 0..<4)
  func theStoreAnswersAsTheSimulatedServerDoes(on kind: TestDatabase, part: Int) async throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000_000)
    print("LARDER_SEED=\(seed) part \(part) on \(kind)")
    for round in 0..<(kind == .sqlite ? 8 : 2) { try await Comparison.run(seed: seed &+ UInt64(part * 100 + round), on: kind) }
  }

  @Test(arguments: TestDatabase.available) func nothingIsLostWhenTheStoreIsOpenedAgain(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let first = try await place.open()
    let reply = try await first.push(onePush(), to: "a", by: "x").reply
    await first.close()
    let second = try await place.open()
    let page = try await second.changes(SyncChangesRequest(device: "d1", history: reply.history, since: 0), in: "a", by: "x")
    #expect(page.last == reply.receipt)
    #expect(page.changes.map(\.id) == ["a"])
    #expect(page.changes.first?.value == Data(#"{"n":1}"#.utf8))
    #expect(try await second.push(onePush(), to: "a", by: "x").reply.receipt == reply.receipt)
    await second.close()
  }

  @Test(arguments: TestDatabase.available) func aDeviceBelongsToTheIdentityThatUsedItFirst(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    _ = try await store.push(onePush(), to: "a", by: "x")
    await #expect(throws: SyncProblem.forbidden) { try await store.push(onePush(seq: 2), to: "a", by: "y") }
    await #expect(throws: SyncProblem.forbidden) { try await store.changes(SyncChangesRequest(device: "d1", since: 0), in: "a", by: "y") }
    await store.close()
  }

  @Test(arguments: TestDatabase.available) func aScopeDemandsItsLowestVersion(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    _ = try await store.push(onePush(), to: "a", by: "x")
    try await store.setMinimum(3, of: "a")
    await #expect(throws: SyncProblem.upgradeRequired(minimum: 3)) { try await store.push(onePush(seq: 2, id: "b"), to: "a", by: "x") }
    _ = try await store.push(onePush(), to: "a", by: "x")
    _ = try await store.push(onePush(seq: 2, id: "b", version: 3), to: "a", by: "x")
    // A deletion has no value in an old form.
    let deletion = try await store.push(onePush(seq: 3, base: 1, value: nil), to: "a", by: "x")
    #expect(deletion.reply.receipt.outcomes == [.accepted(3)])
    await store.close()
  }

  /// Each device keeps the outcomes of its newest push: what is large is left to the changes.
  @Test(arguments: TestDatabase.available) func anOutcomeKeepsNoMoreThanOneMebibyte(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let size = 400_000
    for seq in 1...4 {
      _ = try await store.push(onePush(seq: seq, id: "r\(seq)", value: "\"\(String(repeating: "x", count: size - 2))\""), to: "a", by: "x")
    }
    var push = onePush(device: "d2")
    // Records that come several times count as often.
    push.groups = [1, 2, 3, 4, 1].flatMap { onePush(id: "r\($0)").groups }
    let reply = try await store.push(push, to: "a", by: "x").reply
    var told = 0
    for case .conflict(let records) in reply.receipt.outcomes { told += records.count }
    #expect(reply.receipt.outcomes.count == 5 && told == 2)
    #expect(reply.receipt.json.count < 1 << 20)
    let page = try await store.changes(SyncChangesRequest(device: "d2", history: reply.history, since: 0), in: "a", by: "x")
    #expect(page.last == reply.receipt && page.changes.count == 4)
    await store.close()
  }

  @Test func newerTablesAndOtherFilesAreRefused() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let store = try await SQLSyncStore.open(sqlite: path, logger: LogLines().logger())
    try await store.writers.perform { (connection) throws(StoreError) in try connection.execute("UPDATE larder_meta SET version = 99") }
    await store.close()
    await #expect {
      _ = try await SQLSyncStore.open(sqlite: path, logger: LogLines().logger())
    } throws: { "\($0)".contains("version 99") && "\($0)".contains("newer one") }
    let other = try SQLiteDatabase.open(directory.file("other"))
    try other.execute("PRAGMA application_id=7")
    await #expect {
      _ = try await SQLSyncStore.open(sqlite: directory.file("other"), logger: LogLines().logger())
    } throws: { "\($0)".contains("found another one") }
  }

  @Test(arguments: TestDatabase.available) func pushesThatWaitAtOnceAllGetCommitsOfTheirOwn(on kind: TestDatabase) async throws {
    let place = try await StorePlace.make(kind)
    let store = try await place.open()
    let heads = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<200 {
        group.addTask { try await store.push(onePush(device: "d\(number)", id: "r\(number)"), to: "a", by: "x").head }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(heads.sorted() == Array(1...200))
    let report = try await store.doctor()
    #expect(report == StoreReport(scopes: 1, records: 200, tombstones: 0, devices: 200, findings: []))
    await store.close()
  }

  @Test func aRestoredCopyHasAnotherHistory() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLSyncStore.open(sqlite: directory.file("s"), logger: LogLines().logger())
    let reply = try await store.push(onePush(), to: "a", by: "x").reply
    try await store.backUp(to: directory.file("copy"))
    await store.close()
    let copy = try await SQLSyncStore.open(sqlite: directory.file("copy"), creates: false, logger: LogLines().logger())
    #expect(try await copy.history() == reply.history)
    let history = try await copy.changeHistory()
    #expect(history != reply.history)
    await #expect(throws: SyncProblem.history(history)) {
      try await copy.push(onePush(seq: 2, history: reply.history), to: "a", by: "x")
    }
    await copy.close()
  }
}
