import Foundation
import LarderSync

/// Devices that push to several servers at once, while the changes of every scope are followed from several.
struct FeedRun: Sendable {
  var scopes: Int
  var devices: Int
  var pushes: Int
  let servers: [HTTPTransport]
  let seed: UInt64

  /// What was found.
  struct Result: Sendable {
    var outcome = LoadDevice.Outcome()
    var (missed, gaps, doubled, disorder, pages) = (0, 0, 0, 0, 0)
    /// The numbers that are not as the answers to the pushes say.
    var contradictions = 0
    var seconds = 0.0
    var isClean: Bool { missed + gaps + doubled + disorder + contradictions == 0 && !outcome.wasForgotten }
  }

  static func name(_ scope: Int) -> String { "s\(scope)" }

  func run() async throws -> Result {
    let since = ContinuousClock.now
    var result = Result()
    for try await (scope, outcome, checkers) in try await everything() {
      result.outcome.add(outcome)
      let all = try await read(scope)
      for checker in checkers {
        result.missed += checker.missed(of: all.changes)
        result.gaps += checker.gaps
        result.doubled += checker.doubled
        result.disorder += checker.disorder
        result.pages += checker.pages
      }
      result.contradictions += Self.contradictions(outcome, all)
    }
    result.seconds = (ContinuousClock.now - since) / .seconds(1)
    return result
  }

  private func everything() async throws -> AsyncThrowingStream<(String, LoadDevice.Outcome, [FeedChecker]), any Error> {
    let found = try await withThrowingTaskGroup(of: (String, LoadDevice.Outcome, [FeedChecker]).self) { group in
      for scope in 0..<scopes { group.addTask { try await follow(Self.name(scope), seed &+ UInt64(scope) &* 1_000) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    return AsyncThrowingStream { continuation in
      for one in found { continuation.yield(one) }
      continuation.finish()
    }
  }

  /// Runs the load of one scope and two readers of it.
  private func follow(_ scope: String, _ seed: UInt64) async throws -> (String, LoadDevice.Outcome, [FeedChecker]) {
    let ends = Counter()
    let readers = (0..<2).map { number in
      // One reads when it is told that there is something, the other one all the time.
      Task {
        try await read(scope, from: servers[(Int(seed % 97) + number) % servers.count], waits: number == 0) { ends.value > 0 }
      }
    }
    let load: Swift.Result<LoadDevice.Outcome, any Error>
    do {
      load = .success(
        try await withThrowingTaskGroup(of: LoadDevice.Outcome.self) { group in
          for number in 0..<devices {
            let device = LoadDevice(name: "\(scope)-d\(number)", scope: scope, servers: servers)
            group.addTask { try await device.run(pushes, seed: seed &+ UInt64(number)) }
          }
          return try await group.reduce(into: LoadDevice.Outcome()) { $0.add($1) }
        })
    } catch { load = .failure(error) }
    ends.add()
    var checkers: [FeedChecker] = []
    for reader in readers { checkers.append(try await reader.value) }
    return (scope, try load.get(), checkers)
  }

  /// Follows the changes until there are no more after the end of the load.
  private func read(
    _ scope: String, from server: HTTPTransport, waits: Bool, until isOver: @Sendable () -> Bool
  ) async throws -> FeedChecker {
    let clock = ContinuousClock()
    var checker = FeedChecker()
    while true {
      let wasOver = isOver()
      let request = SyncChangesRequest(
        device: "reader", since: checker.checkpoint, limit: waits ? 1_000 : 5, wait: waits && !wasOver ? 1 : 0)
      let page: SyncChanges
      do { page = try await server.changes(request, in: scope) } catch let problem as SyncProblem {
        guard problem.status == 503 else { throw problem }
        try await clock.sleep(for: .milliseconds(20))
        continue
      }
      checker.take(page)
      if wasOver, !page.more { return checker }
      if !waits, !page.more { try await clock.sleep(for: .milliseconds(5)) }
    }
  }

  /// Reads everything at once.
  private func read(_ scope: String) async throws -> SyncChanges {
    try await servers[0].changes(SyncChangesRequest(device: "reader", since: 0, limit: 1_000_000), in: scope)
  }

  /// Compares what is there with what was answered: each accepted push is there at its number, and nothing else is.
  static func contradictions(_ outcome: LoadDevice.Outcome, _ all: SyncChanges) -> Int {
    let marks = all.changes.filter { $0.collection == FeedChecker.marks }
    var found = marks.filter { outcome.commits[$0.id] != $0.revision }.count
    found += Set(outcome.commits.keys).subtracting(marks.map(\.id)).count
    if all.head != outcome.commits.count || Set(outcome.commits.values).count != outcome.commits.count { found += 1 }
    let shared = all.changes.first { $0.collection == "shared" }
    if (shared.map(LoadDevice.number) ?? 0) != outcome.increments { found += 1 }
    return found
  }
}
