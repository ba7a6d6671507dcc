import Foundation
import Larder
import LarderSQLite
import LarderSync
import LarderTesting
import Synchronization

/// Figures of sync, optimised: `Smoke sync [RECORDS]` measures the first push and the first pull, and what a save costs with sync and without.
enum SyncFigures {
  static func run(_ directory: URL) async throws {
    let count = CommandLine.arguments.count > 2 ? Int(CommandLine.arguments[2]) ?? 100_000 : 100_000
    for isBatched in [true, false] { try await exchange(count, isBatched: isBatched) }
    for kind in Kind.allCases {
      try await saves(kind, directory, ofOne: false)
      try await saves(kind, directory, ofOne: true)
    }
  }

  /// A record of 270 bytes.
  struct Row: Codable, Identifiable, Sendable {
    var id: String
    var name: String
    var note = String(repeating: "lorem ipsum ", count: 15)
    var visits = 0
    var tags = ["pier", "sea"]

    init(_ number: Int) { (id, name) = ("row-\(number + 100_000)", "row number \(number)") }
    static let schema = RepositorySchema<Row>("rows")
  }

  // MARK: Exchanges

  /// A way to a server that does as little as it can, and says how long that took.
  private final class Way: SyncTransport {
    private struct State: Sendable {
      var records: [SyncRecord] = []
      var seen: [String: Int] = [:]
      var last: [String: SyncReceipt] = [:]
      var time = Duration.zero
      var pushed = 0
    }
    private let state = Mutex(State())

    func take() -> (time: Duration, pushed: Int) {
      state.withLock { state in
        defer { (state.time, state.pushed) = (.zero, 0) }
        return (state.time, state.pushed)
      }
    }

    func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
      // What is sent is put into words, and the answer read, as by any transport.
      let json = push.json
      let reply = state.withLock { state in
        let start = ContinuousClock.now
        defer { state.time += ContinuousClock.now - start }
        var outcomes: [SyncOutcome] = []
        for group in push.groups {
          for record in group {
            state.records.append(
              SyncRecord(
                collection: record.collection, id: record.id, revision: state.records.count + 1, stamp: record.stamp, writer: push.device,
                value: record.value))
          }
          state.pushed += group.count
          outcomes.append(.accepted(state.records.count))
        }
        let receipt = SyncReceipt(seq: push.seq, token: push.token, outcomes: outcomes)
        state.last[push.device] = receipt
        return SyncPushReply(history: "h", now: 1, receipt: receipt).json
      }
      return try withExtendedLifetime(json) { try SyncPushReply(json: reply) }
    }

    func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
      let json = state.withLock { state in
        let start = ContinuousClock.now
        defer { state.time += ContinuousClock.now - start }
        let head = max(state.records.count, request.since)
        let page = state.records[min(request.since, state.records.count)..<min(request.since + request.limit, state.records.count)]
        let until = request.since + page.count
        return SyncChanges(
          history: "h", since: request.since, until: until, head: head, more: until < head, total: head - request.since,
          last: state.last[request.device], changes: Array(page)
        ).json
      }
      return try SyncChanges(json: json)
    }

    func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
  }

  private static func exchange(_ count: Int, isBatched: Bool) async throws {
    let way = Way()
    var times: [String] = []
    for direction in ["push", "pull"] {
      let store = try await Store.open(InMemoryBackend())
      let rows = try await store.repository(Row.schema.synced(in: "user/1"))
      if direction == "push" {
        if isBatched {
          try await rows.save(contentsOf: (0..<count).map(Row.init))
        } else {
          for number in 0..<count { try await rows.save(Row(number)) }
        }
      }
      let sync = try await SyncEngine(store, transport: way, scopes: ["user/1"])
      let start = ContinuousClock.now
      try await sync.exchange()
      let all = ContinuousClock.now - start
      let server = way.take()
      times.append("\(direction) \(seconds(all - server.time)) s (server \(seconds(server.time)) s, sent \(server.pushed))")
      try await expect(sync.pending == 0, rows.count() == count)
    }
    print("figures: \(count) records \(isBatched ? "of one write" : "of a write each"): \(times.joined(separator: ", "))")
  }

  private static func seconds(_ time: Duration) -> String { String(format: "%.2f", time / .seconds(1)) }

  // MARK: Saves

  private enum Kind: String, CaseIterable { case memory, json, sqlite }

  private static func open(_ kind: Kind, _ directory: URL, isSynced: Bool) async throws -> (Store, LocalRepository<Row>) {
    let file = directory.appendingPathComponent("\(kind)-\(UUID().uuidString)")
    let store: Store
    switch kind {
    case .memory: store = try await Store.open(InMemoryBackend())
    case .json: store = try await Store.open(JSONFileBackend(file: file))
    case .sqlite: store = try await Store.open(SQLiteBackend(file: file))
    }
    return (store, try await store.repository(isSynced ? Row.schema.synced(in: "user/1") : Row.schema))
  }

  /// Saves the same with sync and without, in turns, so that a busy machine slows both.
  private static func saves(_ kind: Kind, _ directory: URL, ofOne: Bool) async throws {
    let size = ofOne ? 1 : 1_000
    let rounds = ofOne ? (kind == .memory ? 10_000 : 400) : 30
    let sides = [try await open(kind, directory, isSynced: false), try await open(kind, directory, isSynced: true)]
    let sync = try await SyncEngine(sides[1].0, transport: Way(), scopes: ["user/1"])
    var ratios: [String] = []
    for what in ["inserts", "first edits", "edits"] {
      var times: [[Duration]] = [[], []]
      for round in 0..<rounds {
        let rows = (round * size..<(round + 1) * size).map { number in
          var row = Row(number)
          if what != "inserts" { (row.visits, row.name) = (what.count, "another name") }
          return row
        }
        for side in round % 2 == 0 ? [0, 1] : [1, 0] {
          let start = ContinuousClock.now
          if ofOne { try await sides[side].1.save(rows[0]) } else { try await sides[side].1.save(contentsOf: rows) }
          times[side].append(ContinuousClock.now - start)
        }
      }
      // What was inserted is sent, so that the edits that come are the first.
      if what == "inserts" { try await sync.exchange() }
      let middles = times.map { $0.sorted()[$0.count / 2] / .microseconds(1) }
      ratios.append("\(what) \(String(format: "%.2f (%.0f / %.0f us)", middles[1] / middles[0], middles[1], middles[0]))")
    }
    print("figures: saves of \(size), \(kind): \(ratios.joined(separator: ", "))")
    for side in sides { try await side.0.close() }
  }
}
