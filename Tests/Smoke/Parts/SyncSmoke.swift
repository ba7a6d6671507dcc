import Foundation
import Larder
import LarderSync
import LarderTesting

enum SyncSmoke {
  static func run(_ directory: URL) async throws {
    try wire()
    try problems()
    try server()
    try await engine()
    try await running()
    let report = try await SyncSimulation(seed: 1).run()
    try expect(report.seed == 1 && report.problems.isEmpty && report.events[.insert, default: 0] > 0)
    try expect(SyncSimulation(seed: 2).seed == 2 && SyncSimulation.Event.allCases.count > 10)
    let other: [SyncSimulation.Event] = [
      .edit, .increment, .deletion, .transaction, .crashBefore, .crashAfter, .lostRequest, .lostAnswer, .lostPage, .duplicate,
      .lateDuplicate, .delayedRequest, .reordered, .partition, .editInFlight, .interleaving, .severalPages, .conflict, .purge, .resync,
      .restore, .newHistory, .copy, .upgrade, .newerRecord, .newerDeletion, .waitingEdit, .olderRecord, .unknownMember,
      .threeScopes, .clockJump, .signOut, .rejected, .revoked, .division, .leftOut,
    ]
    try expect(Set(other).count == 36)
  }

  private static func push(_ seq: Int, base: Int = 0) -> SyncPush {
    let record = PushedRecord(collection: "jars", id: "1", base: base, version: 1, stamp: 5, value: Data("{\"a\":1}".utf8))
    return SyncPush(history: nil, device: "d", seq: seq, token: "t\(seq)", clock: 9, groups: [[record]])
  }

  private static func wire() throws {
    let push = push(1)
    try expect(SyncPush(json: push.json) == push && push.history == nil && push.device == "d" && push.token == "t1" && push.clock == 9)
    let sent = push.groups[0][0]
    try expect(sent.collection == "jars" && sent.id == "1" && sent.base == 0 && sent.version == 1 && sent.stamp == 5 && sent.value != nil)
    let record = SyncRecord(collection: "jars", id: "1", revision: 3, version: 2, stamp: 4, writer: "d", value: nil)
    try expect(record.revision == 3 && record.version == 2 && record.stamp == 4 && record.writer == "d" && record.value == nil)
    let outcomes: [SyncOutcome] = [.accepted(3), .conflict([record]), .rejected(code: "forbidden", detail: "")]
    let receipt = SyncReceipt(seq: 1, token: "t1", outcomes: outcomes)
    try expect(SyncReceipt(json: receipt.json) == receipt && receipt.outcomes == outcomes && receipt.seq == 1)
    let reply = SyncPushReply(history: "h", now: 8, receipt: receipt)
    try expect(SyncPushReply(json: reply.json) == reply && reply.history == "h" && reply.now == 8 && reply.receipt == receipt)
    let page = SyncChanges(
      history: "h", since: 1, until: 3, head: 4, more: true, horizon: 1, total: 2, last: receipt, changes: [record])
    try expect(SyncChanges(json: page.json) == page && page.head == 4 && page.horizon == 1 && page.total == 2 && page.last == receipt)
    let scopes = SyncScopes(history: "h", scopes: [SyncScope(name: "user/1", mayRead: true, mayWrite: false, head: 4)])
    let scope = try SyncScopes(json: scopes.json).scopes[0]
    try expect(scopes.history == "h" && scope.name == "user/1" && scope.mayRead && !scope.mayWrite && scope.head == 4)
    let request = SyncChangesRequest(
      device: "d", history: "h", since: 1, limit: 2, collections: ["jars"], wait: 3, from: 4)
    try expect(request.limit == 2 && request.collections == ["jars"] && request.wait == 3 && request.from == 4)
  }

  private static func problems() throws {
    let all: [SyncProblem] = [
      .unreachable("no network"), .unavailable(retryAfter: 1), .tooManyRequests(retryAfter: 2), .unauthorized, .forbidden,
      .resync(horizon: 3), .history("h"), .gap(last: 4), .upgradeRequired(minimum: 5), .tooLarge, .malformed("x"),
      .refused(status: 418, detail: "y"), .answerTooLarge, .tooManyScopes(most: 6), .overQuota("q"), .noProgress("z"),
    ]
    for problem in all { try expect(!problem.description.isEmpty && problem.status >= 400 && !problem.json.isEmpty) }
    let read = SyncProblem(status: 410, body: SyncProblem.resync(horizon: 3).json, retryAfter: nil)
    try expect(read == .resync(horizon: 3))
  }

  private static func server() throws {
    let server = SimulatedSyncServer()
    let backup = server.backup()
    try expect(server.push(push(1), to: "user/1").receipt.outcomes == [.accepted(1)])
    server.refuse { _ in "forbidden" }
    try expect(server.push(push(2, base: 1), to: "user/1").receipt.outcomes == [.rejected(code: "forbidden", detail: "")])
    let page = try server.changes(SyncChangesRequest(device: "d", since: 0), in: "user/1")
    try expect(
      page.changes == server.records(of: "user/1") && page.until == 1 && page.since == 0 && !page.more && server.purge("user/1") == 0)
    server.restore(backup)
    try expect(server.records(of: "user/1").isEmpty)
    do {
      _ = try server.push(SyncPush(history: page.history, device: "d", seq: 1, token: "", clock: 0, groups: []), to: "user/1")
      throw SmokeFailure(description: "expected another history")
    } catch let error as SyncProblem { try expect(error != .history(page.history)) }
  }

  private struct Way: SyncTransport {
    let server: SimulatedSyncServer
    func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply { try server.push(push, to: scope) }
    func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges { try server.changes(request, in: scope) }
    func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { AsyncThrowingStream { $0.finish() } }
  }

  private static func engine() async throws {
    let way = Way(server: SimulatedSyncServer())
    for try await _ in try await way.heads(of: "user/1") {}
    let policies: [MergePolicy<Jar>] = [
      .fields(counters: [\.shelf], deletion: .deleteWins), .remoteWins, .localWins, .custom(deletion: .editWins) { _, local, _ in local },
    ]
    try expect(policies.count == 4)
    let (here, there) = (try await Store.open(InMemoryBackend()), try await Store.open(InMemoryBackend()))
    let jars = try await here.repository(Jar.schema.synced(in: "user/1", merge: policies[3]))
    let others = try await there.repository(Jar.schema.synced(in: { _ in "user/1" }, merge: policies[3]))
    let syncs = [
      try await SyncEngine(here, transport: way, scopes: ["user/1"]), try await SyncEngine(there, transport: way, scopes: ["user/1"]),
    ]
    try await jars.save(.plum)
    try await expect(syncs[0].pending == 1)
    try await expect(syncs[0].state(of: 1, in: jars) == .waiting && syncs[0].pendingRecords.current.map(\.recordID) == ["1"])
    for sync in syncs { try await sync.exchange() }
    try await expect(syncs[0].state(of: 1, in: jars) == .clean)
    var lists = syncs[0].pendingRecords.makeAsyncIterator()
    let list = await lists.next()
    try expect(list?.first?.isRefused == nil && list?.first?.collection == nil && list?.first?.scope == nil)
    try await expect(others.loadAll() == [.plum])
    way.server.refuse { _ in "forbidden" }
    try await others.delete(1)
    try await syncs[1].exchange()
    guard let rejection = try await syncs[1].rejected.first(Query()) else { throw SmokeFailure(description: "expected a rejection") }
    try expect(rejection.code == "forbidden" && rejection.detail.isEmpty && rejection.collection == "jars" && rejection.recordID == "1")
    try expect(rejection.date.timeIntervalSince1970 > 0 && !rejection.id.isEmpty)
    try await syncs[1].revert(rejection)
    try await expect(others.loadAll() == [.plum])
    try await syncs[1].retry(rejection)
    let conflict: SyncConflict? = try await syncs[1].conflicts.first(Query())
    try expect(conflict?.lost == nil && conflict?.isLocal == nil && conflict?.scope == nil)
    try expect(conflict?.duplicateOf == nil && conflict?.index == nil)
  }

  /// An engine that runs by itself, towards a server that is not there.
  private static func running() async throws {
    guard let nowhere = URL(string: "http://127.0.0.1:1/larder/") else { throw SmokeFailure(description: "expected a URL") }
    var transport = HTTPTransport(nowhere, timeout: .seconds(5)) { "token" }
    transport.appVersion = "2.4.1"
    var question = SyncChangesRequest(device: "d", since: 0, collections: ["a"], from: 1)
    question.pending = 3
    for call in 0..<3 {
      do {
        switch call {
        case 0: _ = try await transport.push(push(1), to: "user/1")
        case 1: _ = try await transport.changes(question, in: "user/1")
        default: for try await _ in try await transport.heads(of: "user/1") {}
        }
        throw SmokeFailure(description: "expected no answer")
      } catch SyncProblem.unreachable {}
    }
    let store = try await Store.open(InMemoryBackend())
    let jars = try await store.repository(Jar.schema.synced(in: "user/1"))
    try await jars.save(.plum)
    let sync = try await SyncEngine(store, server: nowhere, scopes: ["user/1"], credentials: { nil })
    var statuses = sync.status.makeAsyncIterator()
    while let status = await statuses.next(), status.phase != .waiting {
      try expect([.stopped, .idle, SyncStatus.Phase.exchanging].contains(status.phase))
    }
    sync.wake()
    await sync.stop()
    let last = sync.status.current
    try expect(last.phase == .stopped && last.pending == 1 && last.inFlight == 0 && last.pushed + last.pulled == 0 && last.total == nil)
    try expect(!last.isSaved && last.otherScopes.isEmpty && last.dividedTransactions == 0)
    try expect(last.lastErrorScope == "user/1" && last.lastErrorRecord == nil)
    try await expect(transport.scopes(named: []) == SyncScopes(history: nil, scopes: []))
    try expect(last.lastExchange == nil && last.lastError is SyncProblem && last.rejected == 0 && last.conflicts == 0)
    await sync.start()
    do { try await sync.signOut() } catch let error as SyncUnsentEdits { try expect(error.count == 1 && !error.description.isEmpty) }
    try await sync.signOut(force: true)
    try await expect(jars.count() == 0)
  }
}
