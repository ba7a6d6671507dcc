import Foundation
import Testing

@testable import Larder

/// A store's snapshot gives all of its repositories at one commit, whatever is written meanwhile.
@Suite(.timeLimit(.minutes(15))) struct StoreSnapshotTests {
  private struct Account: Codable, Identifiable { let id: Int; var amount: Int }

  @Test func repositoriesAgreeWhileTransactionsMoveBetweenThem() async throws {
    let store = try await Store.open(InMemoryBackend())
    let left = try await store.repository(RepositorySchema<Account>("left"))
    let right = try await store.repository(RepositorySchema<Account>("right"))
    try await left.save(Account(id: 1, amount: 1_000))
    try await right.save(Account(id: 1, amount: 0))
    let writer = Task {
      for _ in 0..<500 {
        try await store.transaction { transaction in
          try transaction.update(1, in: left) { $0.amount -= 1 }
          try transaction.update(1, in: right) { $0.amount += 1 }
        }
      }
    }
    var isDone = false
    while !isDone {
      let now = store.snapshot
      isDone = try now.find(by: 1, in: right)?.amount == 500
      let sum = try now.loadAll(in: left).map(\.amount).reduce(0, +) + now.fetch(Query(), in: right).map(\.amount).reduce(0, +)
      #expect(sum == 1_000)
      await Task.yield()
    }
    try await writer.value
  }

  @Test func aSnapshotAnswersAsItsRepositoriesDidThen() async throws {
    let store = try await Store.open(InMemoryBackend())
    let spots = try await store.repository(RepositorySchema<Spot>("spots", indexes: [.ordered(\.rating)]))
    let all = (0..<30).map { Spot("spot \($0)", rating: $0 % 5) }
    try await spots.save(contentsOf: all)
    let then = store.snapshot
    let good = Query<Spot>().where(#Predicate { $0.rating >= 3 })
    let expected = try await spots.fetch(good)
    try await spots.deleteAll()
    let later = try await store.repository(RepositorySchema<Spot>("later"))
    try await later.save(Spot("new"))
    let (found, count, first) = (try then.fetch(good, in: spots), try then.count(good, in: spots), try then.first(good, in: spots))
    #expect(found == expected && count == expected.count && first == expected.first)
    let (before, none) = (try then.count(in: spots), try then.count(in: later))
    #expect(before == 30 && none == 0)
    let now = store.snapshot
    #expect(then.revision < now.revision)
    #expect(try now.count(in: later) == 1)
    try await store.close()
    #expect(try then.loadAll(in: spots).count == 30)
  }

  @Test func aRepositoryThatIsOpenedAfterTheSnapshotIsReadAsItDeclares() async throws {
    struct Note: Codable, Identifiable, Equatable { let id: Int; var text: String }
    let schema = RepositorySchema<Note>("notes", indexes: [.fullText(\.text)])
    let directory = try TemporaryDirectory()
    let first = try await Store.open(JSONFileBackend(file: directory.file("notes.json")))
    let notes = (1...20).map { Note(id: $0, text: "note number\($0)") }
    try await first.repository(schema).save(contentsOf: notes)
    try await first.close()
    let store = try await Store.open(JSONFileBackend(file: directory.file("notes.json")))
    let then = store.snapshot
    let repository = try await store.repository(schema)
    // In the order of the ids, and not of their texts.
    #expect(try then.fetch(Query().limit(3), in: repository) == Array(notes.prefix(3)))
    #expect(try then.fetch(Query().matching("number7"), in: repository) == [notes[6]])
    try await store.close()
  }

  @Test func aSnapshotThatOutlivesItsStoreTakesNoOtherForIt() async throws {
    // The memory of a store that is gone is used again, sooner or later.
    for _ in 0..<20 {
      var gone: Store? = try await Store.open(InMemoryBackend())
      let then = try #require(gone?.snapshot)
      try await gone?.close()
      gone = nil
      let spots = try await Store.open(InMemoryBackend()).repository(RepositorySchema<Spot>("spots"))
      let error = #expect(throws: RepositoryError.self) { try then.loadAll(in: spots) }
      #expect(error?.code == .unsupported)
    }
  }

  @Test func aRepositoryOfAnotherStoreIsRefused() async throws {
    let (store, other) = (try await Store.open(InMemoryBackend()), try await Store.open(InMemoryBackend()))
    let spots = try await other.repository(RepositorySchema<Spot>("spots"))
    let now = store.snapshot
    let error = #expect(throws: RepositoryError.self) { try now.loadAll(in: spots) }
    #expect(error?.code == .unsupported)
  }
}
