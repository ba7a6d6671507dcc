import Foundation
import Larder
import Testing

@Suite(.timeLimit(.minutes(15))) struct LocalRepositoryTests {
  @Test func aSavedRecordIsFoundListedAndCounted() async throws {
    let spots = try await LocalRepository<Spot>()
    let jogashima = Spot("Jogashima", rating: 5)
    let revision = try await spots.save(jogashima)
    #expect(revision == Revision(1))
    #expect(try await spots.find(by: jogashima.id) == jogashima)
    #expect(try await spots.loadAll() == [jogashima])
    #expect(try await spots.count() == 1)
    #expect(spots.revision(of: jogashima.id) == revision)
  }

  @Test func aMissingRecordIsNil() async throws {
    let spots = try await LocalRepository<Spot>()
    #expect(try await spots.find(by: UUID()) == nil)
    #expect(spots.revision(of: UUID()) == nil)
  }

  @Test func insertRefusesAnIdThatIsThere() async throws {
    let spots = try await LocalRepository<Spot>()
    let spot = Spot("Ise")
    try await spots.insert(spot)
    do {
      try await spots.insert(spot)
      Issue.record("inserted twice")
    } catch RepositoryError.Code.alreadyExists {
    }
    #expect(try await spots.count() == 1)
  }

  @Test func compareAndSetRefusesAnOldRevision() async throws {
    let spots = try await LocalRepository<Spot>()
    var spot = Spot("Ise")
    let first = try await spots.save(spot, ifRevision: .zero)
    spot.rating = 4
    let second = try await spots.save(spot, ifRevision: first)
    #expect(second > first)
    let error = await #expect(throws: RepositoryError.self) { try await spots.save(spot, ifRevision: first) }
    #expect(error?.code == .revisionMismatch)
    let deletion = await #expect(throws: RepositoryError.self) { try await spots.delete(spot.id, ifRevision: first) }
    #expect(deletion?.code == .revisionMismatch)
    #expect(try await spots.delete(spot.id, ifRevision: second))
  }

  @Test func aTransactionThatThrowsWritesNothing() async throws {
    struct Stop: Error {}
    let spots = try await LocalRepository<Spot>()
    let kept = Spot("kept")
    try await spots.save(kept)
    await #expect(throws: Stop.self) {
      try await spots.transaction { transaction in
        try transaction.save(Spot("gone"), in: spots)
        try transaction.delete(kept.id, in: spots)
        #expect(try transaction.count(in: spots) == 1)
        throw Stop()
      }
    }
    #expect(try await spots.loadAll() == [kept])
    #expect(spots.snapshot.revision == Revision(1))
  }

  @Test func aTransactionSeesItsOwnWrites() async throws {
    let spots = try await LocalRepository<Spot>()
    let spot = Spot("seen")
    let names = try await spots.transaction { transaction in
      try transaction.save(spot, in: spots)
      try transaction.update(spot.id, in: spots) { $0.name += "!" }
      return try transaction.loadAll(in: spots).map(\.name)
    }
    #expect(names == ["seen!"])
    #expect(try await spots.find(by: spot.id)?.name == "seen!")
  }

  @Test func updatesFromManyTasksAllCount() async throws {
    let spots = try await LocalRepository<Spot>()
    let spot = Spot("counter", rating: 0)
    try await spots.save(spot)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<200 { group.addTask { try await spots.update(spot.id) { $0.rating += 1 } } }
      try await group.waitForAll()
    }
    #expect(try await spots.find(by: spot.id)?.rating == 200)
  }

  @Test func replaceAllSwapsTheContents() async throws {
    let spots = try await LocalRepository<Spot>()
    let (old, kept, new) = (Spot("old"), Spot("kept"), Spot("new"))
    try await spots.save(contentsOf: [old, kept])
    let before = spots.snapshot
    try await spots.replaceAll(with: [kept, new])
    #expect(Set(try await spots.loadAll()) == [kept, new])
    #expect(try await spots.find(by: old.id) == nil)
    #expect(Set(before.loadAll()) == [old, kept])
  }

  @Test func aClosedRepositorySaysSo() async throws {
    let spots = try await LocalRepository<Spot>()
    let spot = Spot("last")
    try await spots.save(spot)
    try await spots.close()
    try await spots.close()
    let write = await #expect(throws: RepositoryError.self) { try await spots.save(spot) }
    #expect(write?.code == .closed)
    let read = await #expect(throws: RepositoryError.self) { _ = try await spots.find(by: spot.id) }
    #expect(read?.code == .closed)
    #expect(spots.snapshot.loadAll() == [spot])
  }
}
