import BenchmarkReport
import Foundation

let clock = ContinuousClock()

extension Duration {
  var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12 }
}

/// One of those who do the same work in turns; each turn gives one value.
struct Contender: Sendable {
  let name: String
  let kind: Series.Kind
  var size: Int?
  var unit = Series.Unit.microseconds
  let measure: @Sendable (Int) async throws -> Double

  /// Makes a contender whose turn is timed, and shared out to its operations.
  static func timed(
    _ name: String, _ kind: Series.Kind, size: Int? = nil, operations: Int = 1, _ body: @escaping @Sendable (Int) async throws -> Void
  ) -> Contender {
    Contender(name: name, kind: kind, size: size) { round in
      let start = clock.now
      try await body(round)
      return (clock.now - start).microseconds / Double(operations)
    }
  }

  static func timed(
    _ engine: Engine, _ suffix: String = "", operations: Int = 1, _ body: @escaping @Sendable (Int) async throws -> Void
  ) -> Contender {
    timed(engine.title + suffix, engine.kind, operations: operations, body)
  }

  /// Makes a contender that does one operation many times in a turn; the number that it is given is never the same.
  static func repeated(
    _ engine: Engine, _ suffix: String = "", size: Int? = nil, _ operations: Int, _ body: @escaping @Sendable (Int) async throws -> Void
  ) -> Contender {
    timed(engine.title + suffix, engine.kind, size: size, operations: operations) { round in
      for operation in 0..<operations { try await body(round * operations + operation) }
    }
  }
}

extension Bench {
  /// Has the contenders take turns, so that a slow moment of the machine meets all of them; a first round warms up and does not count.
  func race(_ contenders: [Contender], rounds: Int, warmUp: Int = 1) async throws -> [Series] {
    var values = contenders.map { _ in [Double]() }
    for round in 0..<(warmUp + rounds) {
      progress(round < warmUp ? "warming up" : "round \(round - warmUp + 1) of \(rounds)")
      for (place, contender) in contenders.enumerated() {
        let value = try await contender.measure(round)
        if round >= warmUp { values[place].append(value) }
      }
    }
    return zip(contenders, values).map { Series($0.name, $0.kind, size: $0.size, unit: $0.unit, $1) }
  }
}

extension [Series] {
  /// Adds the sum of some contenders, round by round, as one of its own: the least time for work that has parts.
  func adding(sum names: [String], as name: String, _ kind: Series.Kind = .limit) -> [Series] {
    let parts = names.compactMap { name in first { $0.name == name } }
    guard parts.count == names.count, let first = parts.first else { return self }
    let sums = first.rounds.indices.map { round in parts.reduce(0) { $0 + $1.rounds[round] } }
    return self + [Series(name, kind, unit: first.unit, sums)]
  }
}

/// Throws when a contender did not find what it was asked for: then it did not do the work.
func expect<Item>(_ items: [Item], _ count: Int) throws {
  guard items.count == count else { throw BenchError("expected \(count) records, found \(items.count)") }
}

func expect<Item>(_ item: Item?) throws {
  if item == nil { throw BenchError("expected a record, found none") }
}
