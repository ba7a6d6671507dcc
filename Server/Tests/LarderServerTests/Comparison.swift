import Foundation
import LarderTesting
import LarderWire
import Synchronization
import Testing

@testable import LarderServer

/// A random run on the store and on the server in memory, whose answers must be equal.
enum Comparison {
  static func run(seed: UInt64, on kind: TestDatabase = .sqlite) async throws {
    let place = try await StorePlace.make(kind, seed: seed)
    let time = Mutex(1_000_000)
    let clock: @Sendable () -> Int = { time.withLock { $0 } }
    let oracle = SimulatedSyncServer(now: clock)
    oracle.refuse { $0.value == Data(#"{"bad":true}"#.utf8) ? "bad" : nil }
    let store = try await place.open(now: clock)
    var random = SeededGenerator(seed: seed)
    func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    let history = try await store.history()
    let scopes = ["user/1", "team/2"]
    var sent: [(SyncPush, String)] = []
    var seqs: [String: Int] = [:]
    var known: [String: Int] = [:]
    for step in 0..<120 {
      time.withLock { $0 += Int.random(in: 0..<5_000, using: &random) }
      let scope = scopes[below(2)]
      let device = "d\(below(3))"
      switch below(10) {
      case 0..<6:
        var groups: [[PushedRecord]] = []
        for _ in 0..<below(4) {
          groups.append(
            (0..<(1 + below(3))).map { _ in
              let id = "r\(below(8))"
              let base = below(5) == 0 ? below(30) : known["\(scope)/\(id)"] ?? 0
              let value = below(12) == 0 ? #"{"bad":true}"# : #"{"n":\#(below(99)),"text":"å\u0000\#(step)"}"#
              return PushedRecord(
                collection: "c\(below(2))", id: id, base: base, version: 1 + below(3), stamp: 900_000 + below(400_000),
                value: below(4) == 0 ? nil : Data(value.utf8))
            })
        }
        let seq = (seqs["\(scope) \(device)"] ?? 0) + (below(8) == 0 ? below(4) : 1)
        var push = SyncPush(
          history: below(20) == 0 ? "another" : below(2) == 0 ? nil : history, device: device, seq: max(1, seq), token: "t\(step)",
          clock: clock() + below(60_000) - 30_000, groups: groups)
        var place = scope
        if below(6) == 0, let old = sent.randomElement(using: &random) { (push, place) = old }
        sent.append((push, place))
        // What is sent is what is written and read again.
        let wire = try SyncPush(json: push.json)
        let expected = Result { () throws(SyncProblem) in try oracle.push(adapted(wire, to: oracle, history), to: place) }
        let rejections = wire.groups.map { group in
          group.contains { $0.value == Data(#"{"bad":true}"#.utf8) } ? SyncRejectionReason(code: "bad") : nil
        }
        let found = await Result.of { () async throws(SyncProblem) in
          try await store.push(wire, to: place, by: "x", rejections: rejections).reply
        }
        try compare(expected.map(\.receipt), found.map(\.receipt), oracle, history, "push \(step) of seed \(seed)")
        if case .success(let reply) = expected, case .success(let mine) = found {
          #expect(reply.now == mine.now)
          seqs["\(place) \(push.device)"] = reply.receipt.seq
          for (group, outcome) in zip(push.groups, reply.receipt.outcomes) {
            if case .accepted(let head) = outcome {
              for record in group { known["\(place)/\(record.id)"] = record.value == nil ? 0 : head }
            }
          }
        }
      case 6:
        let expected = oracle.purge(scope)
        let found = try await store.purge(olderThanDays: 0, scope: scope)
        // Where the answer to a commit is lost, the second run finds nothing left to count.
        #expect(expected == found || kind == .disturbed, "purge \(step) of seed \(seed)")
      default:
        let question = SyncChangesRequest(
          device: device, since: below(3) == 0 ? 0 : below(40), limit: 1 + below(6), collections: below(3) == 0 ? ["c1"] : [],
          from: below(3) == 0 ? below(40) : nil)
        let expected = Result { () throws(SyncProblem) in try oracle.changes(question, in: scope) }
        let found = await Result.of { () async throws(SyncProblem) in try await store.changes(question, in: scope, by: "x") }
        try compare(expected.map { plain($0, history) }, found.map { plain($0, history) }, oracle, history, "page \(step) of seed \(seed)")
      }
    }
    let report = try await store.doctor()
    #expect(report.findings.isEmpty, "seed \(seed)")
    await store.close()
  }

  /// The push with the history of the server in memory in place of the store's.
  private static func adapted(_ push: SyncPush, to oracle: SimulatedSyncServer, _ history: String) throws(SyncProblem) -> SyncPush {
    var push = push
    if push.history == history {
      push.history = try oracle.changes(SyncChangesRequest(device: "", since: 0, from: 1 << 40), in: "-").history
    }
    return push
  }

  /// A page without what may differ: the history, the total, the order of records within a commit.
  private static func plain(_ page: SyncChanges, _ history: String) -> SyncChanges {
    var page = page
    if let total = page.total { #expect(page.more ? total > page.changes.count : total == page.changes.count) }
    (page.total, page.history) = (nil, history)
    page.changes.sort { ($0.revision, $0.collection, $0.id) < ($1.revision, $1.collection, $1.id) }
    return page
  }

  private static func compare<Value: Equatable>(
    _ expected: Result<Value, SyncProblem>, _ found: Result<Value, SyncProblem>, _ oracle: SimulatedSyncServer, _ history: String,
    _ what: String
  ) throws {
    switch (expected, found) {
    case (.failure(.history), .failure(.history(let told))): #expect(told == history, "\(what)")
    case (.failure(let one), .failure(let other)): #expect(one == other, "\(what)")
    case (.success(let one), .success(let other)): #expect(one == other, "\(what)")
    default: Issue.record("\(what): expected \(expected), found \(found)")
    }
  }
}

extension Result {
  /// Returns the result of asynchronous work.
  static func of(_ work: () async throws(Failure) -> Success) async -> Result {
    do throws(Failure) { return .success(try await work()) } catch { return .failure(error) }
  }
}
