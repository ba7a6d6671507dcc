import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct StoreTests {
  private struct Stop: Error {}

  private struct Two {
    let backend: FaultInjectingBackend
    let store: Store
    let spots: LocalRepository<Spot>
    let numbers: LocalRepository<Measurement>

    init() async throws {
      backend = FaultInjectingBackend(InMemoryBackend())
      store = try await Store.open(backend, options: StoreOptions(checkpoint: .manual))
      spots = try await store.repository(RepositorySchema<Spot>("spots"))
      numbers = try await store.repository(RepositorySchema<Measurement>("numbers"))
    }
  }

  @Test func aTransactionAcrossRepositoriesIsOneCommit() async throws {
    let two = try await Two()
    let spot = Spot("both")
    let revision = try await two.store.transaction { [spots = two.spots, numbers = two.numbers] transaction in
      try transaction.save(spot, in: spots)
      try transaction.save(Measurement(id: 1, value: 1), in: numbers)
      #expect(try transaction.find(by: 1, in: numbers) == Measurement(id: 1, value: 1))
      return transaction.revision
    }
    #expect(two.backend.calls(.commit) == 1)
    #expect(two.backend.batches.first?.records.map(\.collection) == ["spots", "numbers"])
    #expect(two.spots.revision(of: spot.id) == revision)
    #expect(two.numbers.revision(of: 1) == revision)
  }

  @Test func aTransactionThatThrowsWritesInNoRepository() async throws {
    let two = try await Two()
    try await two.numbers.save(Measurement(id: 1, value: 1))
    await #expect(throws: Stop.self) {
      try await two.store.transaction { [spots = two.spots, numbers = two.numbers] transaction in
        try transaction.save(Spot("gone"), in: spots)
        try transaction.delete(1, in: numbers)
        throw Stop()
      }
    }
    #expect(try await two.spots.count() == 0)
    #expect(try await two.numbers.find(by: 1) != nil)
    #expect(two.backend.calls(.commit) == 1)
  }

  @Test func aTransactionThatTheDiskRefusesWritesInNoRepository() async throws {
    let two = try await Two()
    two.backend.fail(.commit, with: RepositoryError(.full))
    let seen = await code {
      try await two.store.transaction { [spots = two.spots, numbers = two.numbers] transaction in
        try transaction.save(Spot("gone"), in: spots)
        try transaction.save(Measurement(id: 1, value: 1), in: numbers)
      }
    }
    #expect(seen == .full)
    #expect(try await two.spots.count() == 0)
    #expect(try await two.numbers.count() == 0)
  }

  @Test func aRepositoryOfAnotherStoreCannotTakePart() async throws {
    let (two, other) = (try await Two(), try await Two())
    try await other.numbers.save(Measurement(id: 7, value: 7))
    let attempts: [@Sendable (inout Transaction) throws -> Void] = [
      { [numbers = other.numbers] in try $0.save(Measurement(id: 1, value: 1), in: numbers) },
      { [numbers = other.numbers] in _ = try $0.find(by: 7, in: numbers) },
      { [numbers = other.numbers] in _ = try $0.loadAll(in: numbers) },
      { [numbers = other.numbers] in _ = try $0.count(in: numbers) },
      { [numbers = other.numbers] in try $0.delete(7, in: numbers) },
      { [numbers = other.numbers] in try $0.update(7, in: numbers) { $0.value = 8 } },
    ]
    for attempt in attempts {
      let seen = await code {
        try await two.store.transaction { [spots = two.spots] transaction in
          try transaction.save(Spot("taken back"), in: spots)
          try attempt(&transaction)
        }
      }
      #expect(seen == .unsupported)
    }
    #expect(try await two.spots.count() == 0)
    #expect(try await other.numbers.loadAll() == [Measurement(id: 7, value: 7)])
  }

  @Test func aClosedStoreSaysNothingOfAnotherOneOnItsBackend() async throws {
    let backend = InMemoryBackend()
    let first = try await Store.open(backend)
    try await first.close()
    let second = try await Store.open(backend)
    #expect(await first.verify().problems.map(\.code) == [.closed])
    #expect(await second.verify().isSound)
    try await second.close()
  }

  @Test func repositoriesOfOneNameShareTheirRecords() async throws {
    let two = try await Two()
    let again = try await two.store.repository(RepositorySchema<Measurement>("numbers"))
    try await two.numbers.save(Measurement(id: 1, value: 1))
    #expect(try await again.find(by: 1)?.value == 1)
  }

  @Test func closingARepositoryOfAStoreLeavesTheStoreOpen() async throws {
    let two = try await Two()
    try await two.spots.save(Spot("first"), durability: .buffered)
    try await two.spots.close()
    #expect(two.backend.calls(.flush) == 1)
    try await two.numbers.save(Measurement(id: 1, value: 1))
    try await two.store.close()
    #expect(await code { try await two.numbers.save(Measurement(id: 2, value: 2)) } == .closed)
  }
}
