import Foundation
import Larder

nonisolated struct Visit: Codable, Identifiable, Sendable {
  let id: UUID
  let spot: UUID
  let day: String
}

func acrossRepositories(url: URL, spot: Spot, visit: Visit) async throws {
  let store = try await Store.open(JSONFileBackend(file: url))
  let spots = try await store.repository(RepositorySchema<Spot>("spots"))
  let visits = try await store.repository(RepositorySchema<Visit>("visits"))

  let visited = try await store.transaction { transaction in
    guard var spot = try transaction.find(by: visit.spot, in: spots) else { return false }
    spot.rating += 1
    try transaction.save(spot, in: spots)
    try transaction.insert(visit, in: visits)
    return true
  }

  print(visited)
}

func compareAndSet(spots: LocalRepository<Spot>, id: UUID) async throws {
  let revision = spots.revision(of: id) ?? .zero
  guard var spot = try await spots.find(by: id) else { return }
  spot.name = "Jogashima Park"
  do {
    try await spots.save(spot, ifRevision: revision)
  } catch RepositoryError.Code.revisionMismatch {
    print("the spot was changed meanwhile: read again and decide")
  } catch {
    throw error
  }
}

func manyAtOnce(spots: LocalRepository<Spot>, found: [Spot]) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    for spot in found {
      group.addTask { try await spots.save(spot) }  // each returns when it is durable; they share syncs
    }
    try await group.waitForAll()
  }
}

func afterAFailedSync(spots: LocalRepository<Spot>, spot: Spot, url: URL) async throws -> LocalRepository<Spot> {
  do {
    try await spots.save(spot)
    return spots
  } catch RepositoryError.Code.outcomeUnknown {
    do { try await spots.close() } catch { print(error.code) }  // poisoned; the lock is given up all the same
    let reopened = try await LocalRepository<Spot>(jsonFile: url)
    if try await reopened.find(by: spot.id) != spot { try await reopened.save(spot) }
    return reopened
  } catch {
    throw error
  }
}

func consistentRead(store: Store, spots: LocalRepository<Spot>, visits: LocalRepository<Visit>, id: UUID) throws {
  let now = store.snapshot  // one commit of the whole store; no write waits for it
  let spot = try now.find(by: id, in: spots)
  let visited = try now.fetch(Query().where(#Predicate { $0.spot == id }), in: visits)
  let all = try now.count(in: spots)

  print(spot as Any, visited, all)
}
