import Dispatch
import LarderTesting
import Testing

@testable import Larder

/// Whoever calls from the main actor is on it again afterwards, also when the call throws.
///
/// Swift 6.3.1 forgets to come back where a function that stays on its caller's actor forwards a typed error of one that does not.
@MainActor @Suite(.timeLimit(.minutes(10))) struct CallerIsolationTests {
  private struct Spot: Codable, Identifiable, Sendable {
    let id: Int
    var name = "Jogashima"
  }

  private nonisolated static let key = DispatchSpecificKey<Bool>()

  init() { DispatchQueue.main.setSpecific(key: Self.key, value: true) }

  /// Whether this runs on the main actor's queue, whatever the compiler believes.
  private nonisolated static func isOnMainQueue() -> Bool { DispatchQueue.getSpecific(key: key) == true }

  /// Whether somebody who has caught the error of a call is on the main actor.
  private func isBack(after call: @MainActor () async throws -> Void) async -> Bool? {
    do {
      try await call()
      return nil
    } catch {
      return Self.isOnMainQueue()
    }
  }

  @Test func anErrorOfAWriteIsCaughtOnTheCallersActor() async throws {
    let spots = try await LocalRepository<Spot>(inMemory: .init("spots"))
    try await spots.close()
    let spot = Spot(id: 1)
    #expect(await isBack { _ = try await spots.save(spot) } == true)
    #expect(await isBack { _ = try await spots.delete(1) } == true)
    #expect(await isBack { _ = try await spots.insert(spot) } == true)
    #expect(await isBack { _ = try await spots.save(spot, ifRevision: .zero) } == true)
    #expect(await isBack { _ = try await spots.save(contentsOf: [spot]) } == true)
    #expect(await isBack { try await spots.flush() } == true)
    #expect(await isBack { try await spots.checkpoint() } == true)
  }

  @Test func soIsThatOfAnyRepository() async throws {
    let spots = try await LocalRepository<Spot>(inMemory: .init("spots"))
    try await spots.close()
    let any: any Repository<Spot> = spots
    #expect(await isBack { _ = try await any.save(Spot(id: 1)) } == true)
    #expect(await isBack { _ = try await any.delete(1) } == true)
  }
}
