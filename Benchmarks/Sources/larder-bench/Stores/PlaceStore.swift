import BenchmarkRecords
import Foundation
import Larder
import LarderSQLite

/// The work that every store can do.
protocol PlaceStore: Sendable {
  func save(_ place: Place) async throws
  func save(contentsOf places: [Place]) async throws
  /// Reads a record, changes its population and writes it, as one step.
  func update(_ id: UUID, population: Int) async throws
  func delete(_ id: UUID) async throws
  func find(_ id: UUID) async throws -> Place?
  func loadAll() async throws -> [Place]
  /// The page of the best places of a country, by an index.
  func best() async throws -> [Place]
  /// The places with at least so many inhabitants, by an index.
  func populated(_ least: Int) async throws -> [Place]
  func checkpoint() async throws
  func close() async throws
}

/// A repository of Larder's.
struct LarderStore: PlaceStore {
  let repository: LocalRepository<Place>

  init(_ repository: LocalRepository<Place>) { self.repository = repository }

  /// Opens the store of an engine in a directory.
  init(_ engine: Engine, in directory: URL, _ options: StoreOptions = .init(), indexes: [RepositoryIndex<Place>] = []) async throws {
    let schema = RepositorySchema<Place>("places", indexes: indexes)
    let file = directory.appendingPathComponent("places.\(engine.rawValue)")
    repository =
      switch engine {
      case .json: try await LocalRepository(jsonFile: file, schema: schema, options: options)
      case .sqlite: try await LocalRepository(sqliteFile: file, schema: schema, options: options)
      default: try await LocalRepository(backend: InMemoryBackend(), schema: schema, options: options)
      }
  }

  func save(_ place: Place) async throws { try await repository.save(place) }
  func save(contentsOf places: [Place]) async throws { try await repository.save(contentsOf: places) }
  func update(_ id: UUID, population: Int) async throws { try await repository.update(id) { $0.population = population } }
  func delete(_ id: UUID) async throws { try await repository.delete(id) }
  func find(_ id: UUID) async throws -> Place? { try await repository.find(by: id) }
  func loadAll() async throws -> [Place] { try await repository.loadAll() }
  func best() async throws -> [Place] { try await repository.fetch(Place.best) }
  func populated(_ least: Int) async throws -> [Place] { try await repository.fetch(where: #Predicate { $0.population >= least }) }
  func checkpoint() async throws { try await repository.checkpoint() }
  func close() async throws { try await repository.close() }
}
