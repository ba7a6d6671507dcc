import Foundation
import Larder
import LarderTesting
import Testing

private nonisolated struct Spot: Codable, Identifiable, Hashable, Sendable {
  let id: UUID
  var name: String
}

@Suite(.timeLimit(.minutes(1))) struct SpotTests {
  @Test func aSavedSpotIsFound() async throws {
    let spots = try await LocalRepository<Spot>(inMemory: .init("spots"))
    let spot = Spot(id: UUID(), name: "Jogashima")
    try await spots.save(spot)
    let found = try await spots.find(by: spot.id)
    #expect(found == spot)
  }

  @Test func spotsAreThereAfterARestart() async throws {
    let backend = InMemoryBackend()  // outlives the repository, as a file would
    let spot = Spot(id: UUID(), name: "Jogashima")
    let before = try await LocalRepository<Spot>(backend: backend)
    try await before.save(spot)
    try await before.close()
    let after = try await LocalRepository<Spot>(backend: backend)
    let all = try await after.loadAll()
    #expect(all == [spot])
  }

  @Test func aFullDiskIsReportedAndChangesNothing() async throws {
    let disk = FaultInjectingBackend(InMemoryBackend())
    let spots = try await LocalRepository<Spot>(backend: disk)
    disk.fail(.commit, with: RepositoryError(.full))
    let spot = Spot(id: UUID(), name: "Jogashima")
    await #expect {
      try await spots.save(spot)
    } throws: { error in
      RepositoryError.Code.full ~= error
    }
    let count = try await spots.count()
    #expect(count == 0)
  }
}

@MainActor @Suite(.timeLimit(.minutes(1))) struct LiveSpotTests {
  private nonisolated struct ScriptedSpots: ObservableRepository {
    let script = ScriptedSequence<[Spot]>()
    let memory: LocalRepository<Spot>

    func results(of query: Query<Spot>) -> ScriptedSequence<[Spot]> { script }
    func changes(since revision: Revision?) -> RepositoryChanges<Spot> { memory.changes(since: revision) }
    func find(by id: UUID) async throws(RepositoryError) -> Spot? { try await memory.find(by: id) }
    func loadAll() async throws(RepositoryError) -> [Spot] { try await memory.loadAll() }
    func fetch(_ query: Query<Spot>) async throws(RepositoryError) -> [Spot] { try await memory.fetch(query) }
    func first(_ query: Query<Spot>) async throws(RepositoryError) -> Spot? { try await memory.first(query) }
    func count(_ query: Query<Spot>) async throws(RepositoryError) -> Int { try await memory.count(query) }
    func save(_ item: Spot) async throws(RepositoryError) -> Revision { try await memory.save(item) }
    func delete(_ id: UUID) async throws(RepositoryError) -> Bool { try await memory.delete(id) }
  }

  @Test func anErrorOfTheStoreIsShown() async throws {
    let spots = ScriptedSpots(memory: try await LocalRepository(inMemory: .init("spots")))
    let live = LiveQuery(spots)
    spots.script.finish(throwing: RepositoryError(.decodingFailed))
    while live.isLoading { await Task.yield() }
    #expect(live.error?.code == .decodingFailed)
  }
}

private nonisolated struct UnreadableSpots: Repository {
  func find(by id: UUID) async throws(RepositoryError) -> Spot? { throw RepositoryError(.inputOutput) }
  func loadAll() async throws(RepositoryError) -> [Spot] { throw RepositoryError(.inputOutput) }
  func fetch(_ query: Query<Spot>) async throws(RepositoryError) -> [Spot] { throw RepositoryError(.inputOutput) }
  func first(_ query: Query<Spot>) async throws(RepositoryError) -> Spot? { throw RepositoryError(.inputOutput) }
  func count(_ query: Query<Spot>) async throws(RepositoryError) -> Int { throw RepositoryError(.inputOutput) }
  func save(_ item: Spot) async throws(RepositoryError) -> Revision { throw RepositoryError(.inputOutput) }
  func delete(_ id: UUID) async throws(RepositoryError) -> Bool { throw RepositoryError(.inputOutput) }
}
