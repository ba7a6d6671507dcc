import Foundation
import LarderTesting
import Observation
import Testing

@testable import Larder

@MainActor @Suite(.timeLimit(.minutes(15))) struct LiveQueryTests {
  private typealias Registers = LocalRepository<Register>

  private func repository() async throws -> Registers {
    let registers = try await Registers(backend: InMemoryBackend(), options: StoreOptions(checkpoint: .manual))
    try await registers.save(contentsOf: (1...3).map { Register(id: $0, value: $0) })
    return registers
  }

  /// Returns when what is read has changed, as a view that shows it would learn.
  private func change<Value>(of read: @escaping @MainActor () -> Value, after action: () async throws -> Void = {}) async throws {
    let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
    withObservationTracking {
      _ = read()
    } onChange: {
      continuation.finish()
    }
    try await action()
    for await _ in changes {}
  }

  /// Follows changes until the condition holds.
  private func until(_ live: LiveQuery<Register>, _ condition: @escaping @MainActor (LiveQuery<Register>) -> Bool) async throws {
    while !condition(live) { try await change { condition(live) } }
  }

  @Test func aViewSeesTheResultAndEachChange() async throws {
    let registers = try await repository()
    let live = LiveQuery(registers, Query().sorted(by: \.value, .reverse).limit(2))
    #expect(live.isLoading && live.items.isEmpty && live.error == nil)
    try await change { (live.items, live.isLoading) }
    try await until(live) { !$0.isLoading }
    #expect(live.items.map(\.value) == [3, 2])
    try await change(of: { live.items }) { try await registers.save(Register(id: 9, value: 9)) }
    try await until(live) { $0.items.map(\.value) == [9, 3] }
    #expect(!live.isLoading && live.error == nil)
  }

  @Test func anotherQueryTakesThePlaceAtOnce() async throws {
    let registers = try await repository()
    let live = LiveQuery(registers, Query().limit(1))
    try await until(live) { !$0.isLoading }
    live.query = Query().where(#Predicate { $0.value > 1 })
    #expect(live.isLoading && live.items.count == 1, "the last items stay until the next are there")
    try await until(live) { !$0.isLoading }
    #expect(live.items.map(\.value) == [2, 3])
    live.query = Query().near(latitude: 0, longitude: 0)
    try await until(live) { !$0.isLoading }
    #expect(live.error?.code == .unsupported)
    live.query = Query().limit(0)
    #expect(live.error == nil)
    try await until(live) { !$0.isLoading }
    #expect(live.items.isEmpty && live.error == nil)
  }

  @Test func theEndOfTheStoreIsAnError() async throws {
    let registers = try await repository()
    let live = LiveQuery(registers)
    try await until(live) { !$0.isLoading }
    try await registers.close()
    try await until(live) { $0.error != nil }
    #expect(live.error?.code == .closed)
    #expect(live.items.count == 3, "what was shown stays")
  }

  @Test func aLiveQueryThatGoesAwayStops() async throws {
    let registers = try await repository()
    weak var gone: LiveQuery<Register>?
    do {
      let live = LiveQuery(registers)
      gone = live
      try await until(live) { !$0.isLoading }
      #expect(registers.core.hub.isObserved(registers.collection))
    }
    #expect(gone == nil)
    while registers.core.hub.isObserved(registers.collection) { await Task.yield() }
    do { _ = LiveQuery(registers) }
    try await registers.save(Register(id: 1, value: 5))
    while registers.core.hub.isObserved(registers.collection) { await Task.yield() }
  }
}
