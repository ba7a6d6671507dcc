import Foundation
import LarderSync
import LarderTesting

/// A device that pushes as an engine does: one push at a time, the same again until its outcome is known.
struct LoadDevice: Sendable {
  /// What became of the pushes of a device.
  struct Outcome: Sendable {
    /// The commits that were told, by the id of the mark.
    var commits: [String: Int] = [:]
    /// The pushes whose group was not at its base.
    var conflicts = 0
    /// The number of times that the shared record was counted up.
    var increments = 0
    /// The answers that the server cannot answer now, and those that did not come.
    var unavailable = 0
    /// The histories that were told.
    var histories: Set<String> = []
    /// Whether the server did not know a push that it had answered.
    var wasForgotten = false

    mutating func add(_ other: Outcome) {
      commits.merge(other.commits) { $1 }
      conflicts += other.conflicts
      increments += other.increments
      unavailable += other.unavailable
      histories.formUnion(other.histories)
      wasForgotten = wasForgotten || other.wasForgotten
    }
  }

  let name: String
  let scope: String
  let servers: [HTTPTransport]
  /// Whether it takes part in counting a shared record, which makes conflicts.
  var counts = true

  /// Pushes a number of times.
  ///
  /// - Parameter answered: Called with each answer.
  func run(_ pushes: Int, seed: UInt64, answered: @Sendable () -> Void = {}) async throws -> Outcome {
    var random = SeededGenerator(seed: seed)
    var outcome = Outcome()
    var (base, number) = (0, 0)
    for seq in 1...max(1, pushes) {
      let mark = "\(name)-\(seq)"
      var group = [record(FeedChecker.marks, mark, 0, #"{"by":"\#(name)"}"#)]
      let increments = counts && Bool.random(using: &random)
      if increments { group.append(record("shared", "counter", base, #"{"n":\#(number + 1)}"#)) }
      let push = SyncPush(history: nil, device: name, seq: seq, token: "\(name)-\(seq)-\(seed)", clock: 1, groups: [group])
      guard let reply = try await answer(to: push, &random, &outcome) else { break }
      outcome.histories.insert(reply.history)
      switch reply.receipt.outcomes.first {
      case .accepted(let revision):
        outcome.commits[mark] = revision
        if increments { (base, number, outcome.increments) = (revision, number + 1, outcome.increments + 1) }
      case .conflict(let current):
        outcome.conflicts += 1
        if let shared = current.first(where: { $0.collection == "shared" }) { (base, number) = (shared.revision, Self.number(shared)) }
      default: throw SyncProblem.malformed("an outcome that nobody expects")
      }
      answered()
    }
    return outcome
  }

  private func record(_ collection: String, _ id: String, _ base: Int, _ value: String) -> PushedRecord {
    PushedRecord(collection: collection, id: id, base: base, version: 1, stamp: 1, value: Data(value.utf8))
  }

  /// Returns the number in the shared record.
  static func number(_ record: SyncRecord) -> Int {
    Int(String(decoding: record.value ?? Data(), as: UTF8.self).filter(\.isNumber)) ?? 0
  }

  /// Returns the answer of any of the servers; `nil` when they have forgotten the device.
  private func answer(to push: SyncPush, _ random: inout SeededGenerator, _ outcome: inout Outcome) async throws -> SyncPushReply? {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    while true {
      do { return try await servers[Int.random(in: 0..<servers.count, using: &random)].push(push, to: scope) } catch let problem
        as SyncProblem
      {
        switch problem {
        case .unavailable, .unreachable, .malformed:
          guard clock.now < end else { throw problem }
          outcome.unavailable += 1
          try await clock.sleep(for: .milliseconds(Int.random(in: 5...50, using: &random)))
        case .gap:
          outcome.wasForgotten = true
          return nil
        default: throw problem
        }
      }
    }
  }
}
