import Foundation
import LarderTesting
import Testing

@testable import Larder

/// The promise of a unique index: no write makes two records equal, and those that were equal before can be read, saved and resolved.
@Suite(.timeLimit(.minutes(15))) struct UniqueIndexTests {
  struct Account: Codable, Identifiable, Sendable, Equatable {
    let id: Int
    var name: String
    var number: Int?
  }

  private let schema = RepositorySchema<Account>("accounts", indexes: [.unique(\.name), .unique(\.number)])

  private func accounts(_ place: BackendPlace) async throws -> LocalRepository<Account> {
    try await LocalRepository(backend: try place.makeBackend(), schema: schema, options: .init(durability: .buffered))
  }

  @Test(arguments: TestBackend.allCases)
  func aWriteThatWouldMakeTwoEqualThrowsAndChangesNothing(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let accounts = try await accounts(place)
    try await accounts.save(Account(id: 1, name: "a", number: 1))
    let before = accounts.snapshot.revision
    for write in [Account(id: 2, name: "a", number: 2), Account(id: 2, name: "b", number: 1)] {
      let error = await #expect(throws: RepositoryError.self) { try await accounts.save(write) }
      #expect(error?.code == .uniqueViolation)
    }
    #expect(accounts.snapshot.revision == before)
    let found = try await accounts.fetch(Query().sorted(by: \.name))
    #expect(found == [Account(id: 1, name: "a", number: 1)])
    try await accounts.close()
  }

  @Test func aViolationFailsOnlyItsOwnCallerOfAGroup() async throws {
    let disk = try await BusyDisk(schema: schema)
    let first = await disk.occupy { try await $0.save(Account(id: 1, name: "a")) }
    // These two wait for the same commit: the first of them takes the name, the second one is refused.
    let second = try await disk.enqueue { try await $0.save(Account(id: 2, name: "b")) }
    let third = try await disk.enqueue { try await $0.save(Account(id: 3, name: "b")) }
    disk.backend.release(.commit)
    try await first.value
    _ = try await second.value
    let refused = await code(of: third)
    #expect(refused == .uniqueViolation)
    let ids = try await disk.items.loadAll().map(\.id)
    #expect(ids == [1, 2])
  }

  @Test func aTransactionIsJudgedAtItsEnd() async throws {
    let accounts = try await LocalRepository(inMemory: schema)
    try await accounts.save(contentsOf: [Account(id: 1, name: "a"), Account(id: 2, name: "b")])
    try await accounts.save(contentsOf: [Account(id: 1, name: "b"), Account(id: 2, name: "a")])
    let swapped = try await accounts.find(by: 1)
    #expect(swapped?.name == "b")
    let error = await #expect(throws: RepositoryError.self) {
      try await accounts.transaction { transaction in
        try transaction.save(Account(id: 3, name: "c"), in: accounts)
        try transaction.save(Account(id: 4, name: "a"), in: accounts)
      }
    }
    #expect(error?.code == .uniqueViolation)
    let count = try await accounts.count()
    #expect(count == 2)
  }

  @Test func valuesThatAreNilAreNotEqual() async throws {
    let accounts = try await LocalRepository(inMemory: schema)
    try await accounts.save(contentsOf: [Account(id: 1, name: "a"), Account(id: 2, name: "b")])
    let count = try await accounts.count(Query().where(#Predicate { $0.number == nil }))
    #expect(count == 2)
  }

  @Test(arguments: TestBackend.onDisk)
  func duplicatesFromBeforeAreReportedAndResolved(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let loose = try await LocalRepository(
      backend: try place.makeBackend(), schema: RepositorySchema<Account>("accounts"), options: .init(durability: .buffered))
    try await loose.save(contentsOf: [1, 2, 3].map { Account(id: $0, name: "same", number: $0) })
    try await loose.close()

    let accounts = try await accounts(place)
    let duplicates = accounts.openReport.duplicates
    #expect(duplicates.map(\.first.text) == ["1", "1"])
    #expect(duplicates.map(\.second.text) == ["2", "3"])
    #expect(duplicates.allSatisfy { $0.index == "unique(name)" && $0.collection == "accounts" })
    // Saved with the value that it has, a duplicate is no new violation; with another's, it is.
    try await accounts.save(Account(id: 2, name: "same", number: 20))
    let error = await #expect(throws: RepositoryError.self) { try await accounts.save(Account(id: 4, name: "same")) }
    #expect(error?.code == .uniqueViolation)
    try await accounts.save(Account(id: 2, name: "two"))
    let again = await #expect(throws: RepositoryError.self) { try await accounts.save(Account(id: 2, name: "same")) }
    #expect(again?.code == .uniqueViolation)
    try await accounts.delete(3)
    try await accounts.close()
    let reopened = try await self.accounts(place)
    #expect(reopened.openReport.duplicates.isEmpty)
    try await reopened.close()
  }

  @Test func anotherDeclarationForAnOpenCollectionIsRefused() async throws {
    let store = try await Store.open(InMemoryBackend())
    let accounts = try await store.repository(schema)
    let same = try await store.repository(schema)
    try await same.save(Account(id: 1, name: "a"))
    let error = await #expect(throws: RepositoryError.self) {
      try await store.repository(RepositorySchema<Account>("accounts", indexes: [.ordered(\.name)]))
    }
    #expect(error?.code == .unsupported)
    let found = try await accounts.first(Query().where(#Predicate { $0.name == "a" }))
    #expect(found?.id == 1)
  }
}
