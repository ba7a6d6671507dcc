import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Spot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var name: String
}

/// A transport straight to a simulated server.
private struct DirectTransport: SyncTransport {
  let server: SimulatedSyncServer

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply { try server.push(push, to: scope) }
  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges { try server.changes(request, in: scope) }
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
}

@Suite("A synced collection that had another name", .timeLimit(.minutes(15))) struct RenamedCollectionTests {
  private let server = SimulatedSyncServer()
  private let backend = InMemoryBackend()
  private static let spots = (0..<5).map { Spot(id: "\($0)", name: "spot \($0)") }
  private static let synced = RepositorySchema<Spot>("spots", renamedFrom: "records").synced(in: "user/42")

  private func engine(_ store: Store) async throws -> SyncEngine {
    try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42"])
  }

  /// Another device's records.
  private func received() async throws -> [Spot] {
    let store = try await Store.open(InMemoryBackend())
    let repository = try await store.repository(RepositorySchema<Spot>("spots").synced(in: "user/42"))
    try await engine(store).exchange()
    return try await repository.loadAll()
  }

  @Test func itsRecordsAreSent() async throws {
    let first = try await LocalRepository<Spot>(backend: backend)
    try await first.save(contentsOf: Self.spots)
    try await first.close()
    let store = try await Store.open(backend)
    let repository = try await store.repository(Self.synced)
    #expect(repository.openReport.renamed?.recordCount == 5)
    try await engine(store).exchange()
    #expect(try await received() == Self.spots)
  }

  /// The engine has prepared the new name before there was anything to move: only the outbox can tell it of the records.
  @Test func itsRecordsAreSentWhereTheNewNameWasSyncedBefore() async throws {
    let first = try await Store.open(backend)
    try await first.repository(RepositorySchema<Spot>()).save(contentsOf: Self.spots)
    _ = try await first.repository(RepositorySchema<Spot>("spots").synced(in: "user/42"))
    try await engine(first).exchange()
    try await first.close()
    let store = try await Store.open(backend)
    let repository = try await store.repository(Self.synced)
    #expect(repository.openReport.renamed?.recordCount == 5)
    try await engine(store).exchange()
    #expect(try await received() == Self.spots)
  }

  @Test func oneThatWasSyncedUnderItsOldNameIsNotMoved() async throws {
    let first = try await Store.open(backend)
    let old = try await first.repository(RepositorySchema<Spot>().synced(in: "user/42"))
    try await old.save(contentsOf: Self.spots)
    try await first.close()
    let store = try await Store.open(backend)
    let error = await #expect(throws: RepositoryError.self) { _ = try await store.repository(Self.synced) }
    #expect(error?.code == .unsupported && error?.message.contains("the server knows its records by that name") == true)
    let again = try await store.repository(RepositorySchema<Spot>().synced(in: "user/42"))
    #expect(try await again.count() == 5)
  }

  @Test func localizedDescriptionsOfSyncAreTheirTexts() {
    let errors: [any Error & CustomStringConvertible] = [
      SyncUnsentEdits(count: 3), SyncProblem.unauthorized, SyncProblem.malformed("no number"),
    ]
    for error in errors { #expect((error as any Error).localizedDescription == error.description) }
  }
}
