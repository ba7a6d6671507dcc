import Dispatch
import LarderTesting
import Testing

@testable import Larder

/// Whoever calls from the main actor is on it again afterwards, also when the call throws.
///
/// Swift 6.3.1 forgets to come back where a function that stays on its caller's actor forwards a typed error of one that does not.
@MainActor @Suite(.timeLimit(.minutes(15))) struct CallerIsolationTests {
  private struct Spot: Codable, Identifiable, Sendable {
    let id: Int
    var name = "Jogashima"
  }

  private nonisolated static let key = DispatchSpecificKey<Bool>()

  init() async throws {
    DispatchQueue.main.setSpecific(key: Self.key, value: true)
    spots = try await LocalRepository<Spot>(inMemory: .init("spots"))
    try await spots.close()
  }

  /// Whether this runs on the main actor's queue, whatever the compiler believes.
  private nonisolated static func isOnMainQueue() -> Bool { DispatchQueue.getSpecific(key: key) == true }

  private let spots: LocalRepository<Spot>

  @Test func anErrorOfSavingIsCaughtOnTheCallersActor() async throws {
    var isBack: Bool?
    do { try await spots.save(Spot(id: 1)) } catch { isBack = Self.isOnMainQueue() }
    #expect(isBack == true)
  }

  @Test func anErrorOfDeletingIsCaughtOnTheCallersActor() async throws {
    var isBack: Bool?
    do { try await spots.delete(1) } catch { isBack = Self.isOnMainQueue() }
    #expect(isBack == true)
  }

  @Test func anErrorOfInsertingIsCaughtOnTheCallersActor() async throws {
    var isBack: Bool?
    do { try await spots.insert(Spot(id: 1)) } catch { isBack = Self.isOnMainQueue() }
    #expect(isBack == true)
  }

  @Test func anErrorOfAnyRepositoryIsCaughtOnTheCallersActor() async throws {
    let any: any Repository<Spot> = spots
    var isBack: [Bool] = []
    do { try await any.save(Spot(id: 1)) } catch { isBack.append(Self.isOnMainQueue()) }
    do { _ = try await any.delete(1) } catch { isBack.append(Self.isOnMainQueue()) }
    #expect(isBack == [true, true])
  }
}
