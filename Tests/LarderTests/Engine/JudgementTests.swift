import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Stores that are refused after the backend has read them: nothing may have been written by then.
@Suite(.timeLimit(.minutes(15))) struct JudgementTests {
  private static func newer(_ version: Int = 2) -> RepositorySchema<Measurement> { .init("numbers", version: version) }

  @Test func aRefusedStoreIsAbandonedBeforeItIsRecovered() async throws {
    let memory = InMemoryBackend()
    let first = try await LocalRepository<Measurement>(backend: memory, schema: Self.newer())
    try await first.save(Measurement(id: 1, value: 1))
    try await first.close()
    let backend = FaultInjectingBackend(memory)
    #expect(await code { _ = try await LocalRepository(backend: backend, schema: Self.newer(1)) } == .newerSchema)
    #expect(await code { _ = try await LocalRepository<Measurement>(backend: backend) } == .unsupported)
    #expect(backend.calls(.open) == 2)
    #expect(backend.calls(.recover) == 0)
    #expect(backend.calls(.close) == 0)
    let again = try await LocalRepository(backend: backend, schema: Self.newer())
    #expect(backend.calls(.recover) == 1)
    #expect(try await again.find(by: 1)?.value == 1)
    try await again.close()
  }

  @Test func aSchemaThatCannotBeIsRefusedBeforeAnythingIsRead() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    let schema = RepositorySchema<Measurement>("numbers", version: 3, migrations: [.init(from: 1) { _ in }])
    #expect(await code { _ = try await LocalRepository(backend: backend, schema: schema) } == .unsupported)
    #expect(backend.calls(.open) == 0)
  }

  @Test func aRecoveryThatFailsLeavesTheStoreToTheNextOpen() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    backend.fail(.recover, with: RepositoryError(.full))
    #expect(await code { _ = try await LocalRepository<Measurement>(backend: backend) } == .full)
    let items = try await LocalRepository<Measurement>(backend: backend)
    #expect(items.openReport.isNew)
    try await items.close()
  }

  @Test func aRefusedOpenLeavesANewStoreNew() throws {
    let backend = InMemoryBackend()
    #expect(try backend.open(.init()) { _ in }.isNew)
    backend.abandon()
    #expect(try backend.openAndRecover(.init()) { _ in }.isNew)
    try backend.close()
    #expect(try !backend.openAndRecover(.init()) { _ in }.isNew)
  }

  // MARK: A forgotten schema

  @Test(arguments: TestBackend.allCases)
  func aForgottenSchemaDoesNotShowAnEmptyStore(_ backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let store = try await Store.open(try place.makeBackend())
    let trips = try await store.repository(RepositorySchema<Spot>("trips"))
    let visits = try await store.repository(RepositorySchema<Measurement>("visits"))
    try await trips.save(Spot("Jogashima"))
    try await visits.save(contentsOf: [Measurement(id: 1, value: 1), Measurement(id: 2, value: 2)])
    #expect(store.openReport.collections.isEmpty)
    try await store.close()

    let error = await #expect(throws: RepositoryError.self) {
      _ = try await LocalRepository<Spot>(backend: try place.makeBackend())
    }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("trips (1), visits (2)") == true)
    let named = try await LocalRepository(backend: try place.makeBackend(), schema: RepositorySchema<Spot>("trips"))
    #expect(named.openReport.collections.map(\.name) == ["trips", "visits"])
    #expect(named.openReport.collections.map(\.recordCount) == [1, 2])
    try await named.close()
    // A name that was given is believed, and so is a default name that has records.
    let others = try await LocalRepository(backend: try place.makeBackend(), schema: RepositorySchema<Spot>("others"))
    #expect(try await others.count() == 0)
    try await others.close()
    let both = try await Store.open(try place.makeBackend())
    let records = try await both.repository(RepositorySchema<Spot>())
    try await records.save(Spot("by default"))
    try await records.delete(try #require(try await records.loadAll().first).id)
    try await both.close()
    let unnamed = try await LocalRepository<Spot>(backend: try place.makeBackend())
    #expect(try await unnamed.count() == 0)
    try await unnamed.close()
  }

  @Test func duplicatesAreNotClean() async throws {
    let backend = InMemoryBackend()
    let plain = try await LocalRepository<Measurement>(backend: backend)
    try await plain.save(contentsOf: [Measurement(id: 1, value: 7), Measurement(id: 2, value: 7)])
    try await plain.close()
    let unique = try await LocalRepository(
      backend: backend, schema: RepositorySchema<Measurement>(indexes: [.unique(\.value)]))
    #expect(unique.openReport.duplicates.count == 1)
    #expect(!unique.openReport.isClean)
    try await unique.close()
  }

  // MARK: What nobody asked for

  @Test func aPlaceThatIsNoneIsRefused() async throws {
    struct Place: Codable, Identifiable, Hashable, Sendable {
      let id: Int
      var latitude: Double?
      var longitude: Double?
    }
    let schema = RepositorySchema<Place>(indexes: [.geo(\.latitude, \.longitude)])
    let places = try await LocalRepository(backend: InMemoryBackend(), schema: schema)
    for (latitude, longitude) in [(200.0, 0.0), (-90.1, 0)] {
      let place = Place(id: 1, latitude: latitude, longitude: longitude)
      #expect(await code { try await places.save(place) } == .unsupported)
      #expect(await code { try await places.save(contentsOf: [place]) } == .unsupported)
      #expect(await code { try await places.transaction { _ = try $0.save(place, in: places) } } == .unsupported)
    }
    try await places.save(contentsOf: [
      Place(id: 1, latitude: 90, longitude: 540), Place(id: 2), Place(id: 3, latitude: 3), Place(id: 4, latitude: -90, longitude: -180),
    ])
    #expect(await code { try await places.update(1) { $0.latitude = 91 } } == .unsupported)
    #expect(try await places.find(by: 1)?.latitude == 90)
    try await places.close()
  }

  @Test func onlyAStoreThatOthersCanWriteIsFollowed() async throws {
    for backend in TestBackend.onDisk {
      let place = try backend.factory.makePlace()
      defer { place.remove() }
      let items = try await LocalRepository<Measurement>(backend: try place.makeBackend())
      #expect(!items.core.hasForeignWriters)
      try await items.close()
      guard backend != .log else { continue }
      let reader = try await LocalRepository<Measurement>(backend: try place.makeBackend(), options: StoreOptions(access: .readOnly))
      #expect(reader.core.hasForeignWriters == (backend == .sqlite))
      try await reader.refresh()
      try await reader.close()
    }
  }
}
