import Foundation
import Testing

@testable import Larder

/// A query that is kept, and live results beside other people's writes, cost the same after 100,000 uses as at first.
///
/// Each runs in a process of its own: so that its memory can be told, and because what they guard against ends in a crash.
@Suite(.timeLimit(.minutes(15))) struct RepeatedUseTests {
  @Test func aQueryIsUsedManyTimesOnASmallStack() async {
    await #expect(processExitsWith: .success) {
      let query = Query<Thing>().where(#Predicate { $0.rating >= 4 && $0.country == "JP" }).where(#Predicate { $0.tags.contains("tide") })
      var random = SeededGenerator(1)
      let things = (0..<2).map { Thing.random($0, using: &random) }
      let repository = try await LocalRepository(inMemory: RepositorySchema<Thing>("things"))
      try await repository.save(contentsOf: things)
      let snapshot = repository.snapshot
      let slot = try #require(snapshot.records.ordered().first)
      let matcher = RecordMatcher(query, coder: repository.coder, definitions: snapshot.indexes.definitions)
      try await RepeatedUse.onSmallStack {
        try RepeatedUse.check("fetch") { _ = try snapshot.fetch(query) }
        try RepeatedUse.check("test of a live query") { _ = try matcher.liveMatch(slot) }
      }
    }
  }

  @Test func liveResultsStandBesideManyWrites() async {
    await #expect(processExitsWith: .success) {
      let repository = try await LocalRepository(inMemory: RepositorySchema<Measurement>("measurements"))
      let query = Query<Measurement>().where(#Predicate { $0.value > 1_000 })
      let told = Task {
        var counts: [Int] = []
        for try await items in repository.results(of: query) {
          counts.append(items.count)
          if items.count == 1 { break }
        }
        return counts
      }
      let live = await LiveQuery(repository, query)
      while await live.isLoading { await Task.yield() }
      let unrelated = (0..<1_000).map { Measurement(id: $0, value: 1) }
      var meter = RepeatedUse.Meter()
      for _ in 0..<100 { try await meter.measure { try await repository.save(contentsOf: unrelated) } }
      try meter.check("1,000 saves beside live results")
      try await repository.save(Measurement(id: 5_000, value: 2_000))
      let counts = try await told.value
      #expect(counts == [0, 1])
      while await live.items.isEmpty { await Task.yield() }
    }
  }
}

/// Measures whether the same costs the same each time.
enum RepeatedUse {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The costs of a hundred equal portions of work, in time of the processor, and the memory after a fifth of them and at the end.
  struct Meter {
    private var costs: [Duration] = []
    private var memory: (early: Int, last: Int) = (0, 0)

    mutating func measure(_ work: () async throws -> Void) async throws {
      let start = Self.processorTime
      try await work()
      note(start)
    }

    mutating func measure(_ work: () throws -> Void) throws {
      let start = Self.processorTime
      try work()
      note(start)
    }

    private mutating func note(_ start: Duration) {
      costs.append(Self.processorTime - start)
      memory.last = Self.residentBytes
      if costs.count == 20 { memory.early = memory.last }
    }

    /// The cheapest portion of a tenth is hardly disturbed by what else the machine does.
    func check(_ name: String) throws {
      let (early, late) = (costs[10..<20].min() ?? .zero, costs[90..<100].min() ?? .zero)
      let grown = memory.last - memory.early
      print("\(name): \(early) at first, \(late) at last, \(grown) bytes more")
      if late > early * 2 { throw Failure(description: "\(name): \(early) at first, \(late) at last") }
      if grown > 4 << 20 { throw Failure(description: "\(name): \(grown) bytes more") }
    }

    /// The processor time of the process: what else the machine does makes a portion last longer, and costs it little.
    private static var processorTime: Duration { .microseconds(Int(Double(clock()) * 1_000_000 / Double(CLOCKS_PER_SEC))) }

    /// The memory of the process; 0 where it is not known.
    private static var residentBytes: Int {
      guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
      let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      return pages * 4_096
    }
  }

  /// Does something 100,000 times.
  static func check(_ name: String, _ work: () throws -> Void) throws {
    var meter = Meter()
    for _ in 0..<100 {
      try meter.measure { for _ in 0..<1_000 { try work() } }
    }
    try meter.check(name)
  }

  /// Runs a body on a thread with a stack of 512 KB, as threads have that are not the main thread of an app.
  static func onSmallStack(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      let thread = Thread { continuation.resume(with: Result { try body() }) }
      thread.stackSize = 512 << 10
      thread.start()
    }
  }
}
