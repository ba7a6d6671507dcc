import Foundation
import LarderTesting
import Observation
import Testing

@testable import Larder

/// A view model that follows a repository can be given another one than the library's.
@Suite(.timeLimit(.minutes(15))) struct ObservableRepositoryTests {
  private struct Double: ObservableRepository {
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

  @MainActor private func wait(for live: LiveQuery<Spot>, until isDone: (LiveQuery<Spot>) -> Bool) async {
    while !isDone(live) {
      await withCheckedContinuation { continuation in
        withObservationTracking {
          _ = (live.items, live.isLoading, live.error)
        } onChange: {
          Task { @MainActor in continuation.resume() }
        }
      }
    }
  }

  @MainActor @Test func aLiveQueryShowsWhatADoubleGives() async throws {
    let spots = Double(memory: try await LocalRepository(inMemory: .init("spots")))
    let live = LiveQuery(spots)
    #expect(live.isLoading && live.items.isEmpty)
    let pier = Spot("pier")
    spots.script.send([pier])
    await wait(for: live) { !$0.isLoading }
    #expect(live.items == [pier] && live.error == nil)
    spots.script.finish(throwing: RepositoryError(.decodingFailed))
    await wait(for: live) { $0.error != nil }
    #expect(live.error?.code == .decodingFailed && live.items == [pier])
  }

  @Test func aRepositoryIsFollowedThroughTheProtocolAlone() async throws {
    let local = try await LocalRepository<Spot>(inMemory: .init("spots"))
    let spots: any ObservableRepository<Spot> = local
    let pier = Spot("pier")
    try await spots.save(pier)
    for try await items in spots.results(of: Query()) {
      #expect(items == [pier])
      break
    }
    for try await set in spots.changes(since: Revision.zero) {
      #expect(set.changes.map(\.new) == [pier])
      break
    }
  }

  @Test func aScriptGivesItsElementsAndThenItsError() async throws {
    let script = ScriptedSequence([1, 2])
    script.send(3)
    script.finish(throwing: RepositoryError(.closed))
    var found: [Int] = []
    do {
      for try await number in script { found.append(number) }
      Issue.record("the script ends with an error")
    } catch {
      #expect(error.code == .closed)
    }
    #expect(found == [1, 2, 3])
  }
}
