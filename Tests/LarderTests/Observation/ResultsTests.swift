import Dispatch
import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct ResultsTests {
  private typealias Registers = LocalRepository<Register>

  private func repository(_ values: ClosedRange<Int> = 1...5) async throws -> Registers {
    let registers = try await Registers(
      backend: InMemoryBackend(), schema: .init(indexes: [.ordered(\.value)]), options: StoreOptions(checkpoint: .manual))
    try await registers.save(contentsOf: values.map { Register(id: $0, value: $0 * 10) })
    return registers
  }

  private static var best: Query<Register> { Query<Register>().sorted(by: \.value, .reverse) }

  // MARK: What is told

  @Test func theCurrentResultComesAtOnceAndThenEachDifferentOne() async throws {
    let registers = try await repository()
    var results = registers.results(of: Self.best.limit(2)).makeAsyncIterator()
    let first = try await results.next()
    #expect(first?.map(\.value) == [50, 40])
    try await registers.save(Register(id: 1, value: 45))
    let second = try await results.next()
    #expect(second?.map(\.value) == [50, 45])
    try await registers.delete(5)
    let third = try await results.next()
    #expect(third?.map(\.value) == [45, 40])
    try await registers.save(Register(id: 9, value: 99))
    let fourth = try await results.next()
    #expect(fourth?.map(\.id) == [9, 1])
    let runs = await results.results?.runCount
    #expect(runs == 1, "the query is not run again")
  }

  @Test func aChangeOutsideOfTheResultIsNotTold() async throws {
    let registers = try await repository()
    let query = Query<Register>().where(#Predicate { $0.value > 15 }).sorted(by: \.value).limit(2)
    var results = registers.results(of: query).makeAsyncIterator()
    let first = try await results.next()
    #expect(first?.map(\.value) == [20, 30])
    try await registers.save(Register(id: 1, value: 11))
    try await registers.save(Register(id: 5, value: 60))
    try await registers.delete(4)
    try await registers.save(Register(id: 2, value: 21))
    let second = try await results.next()
    #expect(second?.map(\.value) == [21, 30], "the only result that differs from the first")
    try await registers.save(Register(id: 2, value: 21))
    let third = try await results.next()
    #expect(third == second, "another revision of a record is another result")
  }

  @Test func aSlowReaderGetsTheNewestOnly() async throws {
    let registers = try await repository()
    var results = registers.results(of: Self.best).makeAsyncIterator()
    _ = try await results.next()
    for value in 1...1_000 { try await registers.save(Register(id: 1, value: value)) }
    try await registers.settle()
    let waiting = await results.results?.currentFeed?.waitingCount
    #expect(waiting == 1)
    let newest = try await results.next()
    #expect(newest?.first == Register(id: 1, value: 1_000))
    try await registers.save(Register(id: 77, value: 1))
    try await registers.delete(77)
    try await registers.save(Register(id: 1, value: 1_001))
    let next = try await results.next()
    #expect(next?.first == Register(id: 1, value: 1_001))
  }

  @Test func whatNoQueryNeedsIsNotKeptForAReaderThatIsAway() async throws {
    let registers = try await repository()
    let query = Query<Register>().where(#Predicate { $0.value > 40 }).sorted(by: \.value).limit(2)
    var results = registers.results(of: query).makeAsyncIterator()
    let first = try await results.next()
    #expect(first?.map(\.id) == [5])
    let feed = try #require(await results.results?.currentFeed)
    for id in 100..<200 { try await registers.save(Register(id: id, value: 7)) }
    for id in 1...3 { try await registers.delete(id) }
    try await registers.settle()
    #expect(feed.waitingCount == 0)
    try await registers.save(Register(id: 4, value: 41))
    try await registers.delete(5)
    try await registers.settle()
    #expect(feed.waitingCount == 2, "what comes into the result, and what leaves it")
    let second = try await results.next()
    #expect(second?.map(\.id) == [4])
    let runs = await results.results?.runCount
    #expect(runs == 1)
  }

  @Test func noCommitWaitsForTheTestOfAChange() async throws {
    let registers = try await repository()
    try await registers.settle()
    let slow = SlowObserver()
    registers.core.hub.register(slow, for: registers.collection, isLater: true)
    // Fewer are told on the commits' own way.
    let others = (0..<ChangeHub.few.tests).map { _ in SlowObserver() }
    for other in others {
      other.gate.signal()
      registers.core.hub.register(other, for: registers.collection, isLater: true)
    }
    // With the observer on the commits' own way, the second of these would never return.
    for value in 1...20 { try await registers.save(Register(id: 1, value: value)) }
    #expect(slow.commits.isEmpty)
    slow.gate.signal()
    try await registers.settle()
    #expect(slow.commits == (2...21).map { UInt64($0) }, "in their order, each once")
    try await registers.save(Register(id: 1, value: 0))
    try await registers.close()
    try await until { slow.isFinished }
    #expect(slow.commits.last == 22, "the end comes behind the last change")
    #expect(others.allSatisfy { $0.commits == slow.commits })
  }

  @Test func whatTakesLongIsHandedOverInTheMiddle() async throws {
    let registers = try await repository()
    try await registers.settle()
    let busy = (0..<8).map { _ in BusyObserver() }
    for other in busy { registers.core.hub.register(other, for: registers.collection, isLater: true) }
    let slow = SlowObserver()
    registers.core.hub.register(slow, for: registers.collection, isLater: true)
    // On the commits' own way, the second of these would never return.
    for value in 1...20 { try await registers.save(Register(id: 1, value: value)) }
    #expect(slow.commits.isEmpty)
    slow.gate.signal()
    try await registers.settle()
    #expect(slow.commits == (2...21).map { UInt64($0) }, "in their order, each once")
    #expect(busy.allSatisfy { $0.commits == slow.commits })
    try await registers.close()
    try await until { slow.isFinished }
  }

  /// An observer that takes as long as all of them may.
  private final class BusyObserver: ChangeObserver {
    private let state = Mutex([UInt64]())
    var commits: [UInt64] { state.withLock { $0 } }

    func receive(_ changes: [RecordChange], commit: Revision) {
      let start = ContinuousClock.now
      while ContinuousClock.now - start <= ChangeHub.patience {}
      state.withLock { $0.append(commit.number) }
    }

    func finish() {}
  }

  /// An observer that takes nothing before it is let through.
  private final class SlowObserver: ChangeObserver {
    let gate = DispatchSemaphore(value: 0)
    private let state = Mutex((commits: [UInt64](), isFinished: false))
    var commits: [UInt64] { state.withLock { $0.commits } }
    var isFinished: Bool { state.withLock { $0.isFinished } }

    func receive(_ changes: [RecordChange], commit: Revision) {
      gate.wait()
      gate.signal()
      state.withLock { $0.commits.append(commit.number) }
    }

    func finish() { state.withLock { $0.isFinished = true } }
  }

  @Test func aUsedUpWindowIsFilledAgain() async throws {
    let registers = try await repository(1...100)
    var results = registers.results(of: Self.best.limit(3).offset(2)).makeAsyncIterator()
    _ = try await results.next()
    for id in stride(from: 100, through: 6, by: -1) {
      try await registers.delete(id)
      let items = try await results.next()
      #expect(items?.map(\.id) == (1...(id - 3)).suffix(3).reversed())
    }
    let runs = try #require(await results.results?.runCount)
    #expect((2...6).contains(runs), "\(runs) runs for 95 removals: the window holds 26")
    let feed = await results.results?.currentFeed
    for id in 200..<400 { try await registers.save(Register(id: id, value: id)) }
    try await registers.settle()
    #expect(feed?.waitingCount == 200)
    let many = try await results.next()
    #expect(many?.map(\.id) == [397, 396, 395])
    let runsAfterInsertions = await results.results?.runCount
    #expect(runsAfterInsertions == runs, "insertions do not use a window up")
  }

  @Test func anUnsupportedQueryThrowsFromTheFirstNextAndEnds() async throws {
    let registers = try await repository()
    var results = registers.results(of: Query().near(latitude: 0, longitude: 0)).makeAsyncIterator()
    let error = await #expect(throws: RepositoryError.self) { try await results.next() }
    #expect(error?.code == .unsupported)
    let end = try await results.next()
    #expect(end == nil)
    #expect(!registers.core.hub.isObserved(registers.collection))
  }

  @Test func aPredicateThatFailsLaterEndsTheResults() async throws {
    let registers = try await repository()
    var results = registers.results(of: Query().where(#Predicate { $0.value * 2 > 0 })).makeAsyncIterator()
    _ = try await results.next()
    try await registers.save(Register(id: 1, value: .max))
    let error = await #expect(throws: RepositoryError.self) { try await results.next() }
    #expect(error?.code == .unsupported)
  }

  // MARK: The end

  @Test func resultsEndWhenTheStoreIsClosed() async throws {
    let registers = try await repository()
    var results = registers.results(of: Self.best.limit(1)).makeAsyncIterator()
    _ = try await results.next()
    let waiting = Task { [results = registers.results(of: Self.best)] in
      var count = 0
      for try await _ in results { count += 1 }
      return count
    }
    try await registers.save(Register(id: 1, value: 99))
    try await registers.close()
    let last = try await results.next()
    let end = try await results.next()
    #expect(last?.map(\.value) == [99] && end == nil)
    _ = try await waiting.value
    var late = registers.results(of: Self.best).makeAsyncIterator()
    let nothing = try await late.next()
    #expect(nothing == nil)
  }

  @Test func aCancelledReaderOfResultsEnds() async throws {
    let registers = try await repository()
    let (first, ended) = (Flag(), Flag())
    let reader = Task {
      for try await _ in registers.results(of: Self.best) { first.set() }
      ended.set()
    }
    try await until { first.isSet }
    reader.cancel()
    try await reader.value
    #expect(ended.isSet)
    try await until { !registers.core.hub.isObserved(registers.collection) }
  }

  @Test func aReaderOfResultsThatGoesAwayIsForgotten() async throws {
    let registers = try await repository()
    weak var live: LiveResults<Register>?
    do {
      var results = registers.results(of: Self.best).makeAsyncIterator()
      _ = try await results.next()
      live = results.results
      #expect(live != nil)
      #expect(registers.core.hub.isObserved(registers.collection))
      _ = consume results
    }
    try await until { live == nil }
    #expect(!registers.core.hub.isObserved(registers.collection))
  }

  @Test func resultsDoNotKeepTheStoreNorOldRecords() async throws {
    var registers: Registers? = try await repository()
    weak let core = registers?.core
    weak let slot = try registers?.snapshot.records[RecordKey("1")]
    var results = try #require(registers?.results(of: Self.best.limit(1))).makeAsyncIterator()
    _ = try await results.next()
    #expect(slot != nil)
    try await registers?.save(Register(id: 1, value: 1))
    try await registers?.save(Register(id: 9, value: 99))
    _ = try await results.next()
    // The reader has followed; and the index lets go of what it has followed soon, without a further write.
    try await until { slot == nil }
    registers = nil
    try await until { core == nil }
    let end = try await results.next()
    #expect(end == nil)
  }
}
