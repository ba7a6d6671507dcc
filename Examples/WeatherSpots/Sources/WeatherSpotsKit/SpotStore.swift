public import Foundation
public import Larder
import LarderSQLite

/// Everything that weather-spots keeps, in one file: the spots, and the forecasts fetched for them.
public struct SpotStore: Sendable {
  /// The file's store, for transactions over both and for verifying.
  public let store: Store
  /// The spots by id.
  public let spots: LocalRepository<Spot>
  /// The last forecast of each place and day.
  public let forecasts: LocalRepository<DayForecast>

  /// Opens a store, or creates it; the name says which kind it is.
  ///
  /// - Parameter file: A name that ends in `.json` or `.sqlite`.
  /// - Throws: What opening throws; `.unsupported` for another name.
  public init(file: URL) async throws(RepositoryError) {
    try await self.init(backend: Self.backend(file))
  }

  /// Opens the store that a backend keeps.
  public init(backend: any StorageBackend) async throws(RepositoryError) {
    store = try await Store.open(backend)
    spots = try await store.repository(RepositorySchema("spots"))
    forecasts = try await store.repository(RepositorySchema("forecasts"))
  }

  private static func backend(_ file: URL) throws(RepositoryError) -> any StorageBackend {
    switch file.pathExtension {
    case "json": JSONFileBackend(file: file)
    case "sqlite": SQLiteBackend(file: file)
    default: throw RepositoryError(.unsupported, "the name of a store ends in .json or .sqlite", file: file.path)
    }
  }
}
