// Geocoding/ finds places by name and the zones of points. What was found is kept for long: places do not move.
// Invariant: a name that finds nothing is an answer, a service that is out is a failure. Called by the commands geocode and forecast.

import Foundation
public import Larder

/// A place that a name found.
public struct FoundPlace: Codable, Hashable, Sendable {
  /// The name.
  public var name: String
  /// Degrees north.
  public var latitude: Double
  /// Degrees east.
  public var longitude: Double
  /// Metres above the sea.
  public var elevationMeters: Double?
  /// The IANA name of its zone.
  public var timezone: String
  /// The country's name.
  public var country: String?
  /// The ISO 3166 code of the country.
  public var countryCode: String?
  /// The region in the country.
  public var region: String?
  /// The number of inhabitants.
  public var population: Int?
  /// Its number at GeoNames.
  public var geonameID: Int
}

/// Places by name and zones by point, from Open-Meteo's services.
public struct Geocoding: Sendable {
  /// A question for places.
  public struct Question: Hashable, Codable, Sendable {
    /// The beginning of a name, at least two characters.
    public var name: String
    /// The number of places to return at most, 1 to 100.
    public var count: Int
    /// The language of the answer, such as en.
    public var language: String
    /// Only places of this country (ISO 3166), or everywhere.
    public var country: String
    /// The server, unless it is Open-Meteo's: the answers of one server are not shown as those of another.
    var server: String?

    /// Makes a question.
    public init(_ name: String, count: Int = 10, language: String = "en", country: String = "") {
      self.name = name.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
      self.count = min(max(count, 1), 100)
      self.language = language
      self.country = country.uppercased()
    }
  }

  let places: CachedRepository<Question, [FoundPlace]>
  let zones: CachedRepository<ZoneKey, String>
  let clock: any WallClock
  private let origin: String?

  /// A cell, and which server is asked when it is not Open-Meteo's.
  struct ZoneKey: Hashable, Codable, Sendable {
    private let row: Int
    private let column: Int
    let server: String?

    var cell: GridCell { GridCell(row: row, column: column) }

    init(_ cell: GridCell, server: String?) {
      (row, column) = (cell.row, cell.column)
      self.server = server
    }
  }

  /// Makes the geocoding of a store.
  ///
  /// - Throws: What opening the collections throws.
  public init(
    _ storage: SpotStore, servers: OpenMeteoServers = .openMeteo, transport: any Transport = URLSessionTransport(),
    timeout: Duration = .seconds(10), limits: ProviderLimits, retry: RetryPolicy = .default, holds: Holds? = nil,
    clock: any WallClock = SystemClock()
  ) async throws(RepositoryError) {
    self.clock = clock
    origin = servers.origin
    let client = OpenMeteoClient(servers: servers, transport: transport, timeout: timeout, holds: holds) { clock.now }
    places = CachedRepository(
      storage: try await storage.store.repository(RepositorySchema("geocoding")),
      freshness: FreshnessPolicy(fresh: .hours(30 * 24), usable: .hours(365 * 24), negative: .hours(24)),
      eviction: EvictionPolicy(countLimit: 1000), retry: retry, clock: clock,
      source: GeocodingSource(client: client).limited(by: limits.of("geocoding")))
    zones = CachedRepository(
      storage: try await storage.store.repository(RepositorySchema("timezones")),
      freshness: FreshnessPolicy(fresh: .hours(365 * 24), usable: .hours(10 * 365 * 24)), eviction: EvictionPolicy(countLimit: 1000),
      retry: retry, clock: clock, source: ZoneSource(client: client).limited(by: limits.of("forecast")))
  }

  /// Returns the places that a name finds, the most likely first; fresh for thirty days.
  ///
  /// - Throws: ``ProviderError``, `CacheError` but never for "there is none", which is an empty list.
  public func places(_ question: Question, policy: FetchPolicy = .cacheFirst) async throws -> Cached<[FoundPlace]> {
    var question = question
    question.server = origin
    do { return try await places.value(for: question, policy: policy) } catch CacheError.absent(_, let since) {
      return Cached(value: [], fetchedAt: since, age: .zero, state: .fresh, origin: .disk)
    }
  }

  /// Returns the zone that a point lies in.
  ///
  /// - Throws: ``ProviderError``, `CacheError`.
  public func zone(of point: Coordinate) async throws -> String {
    try await zones.value(for: ZoneKey(GridCell(point), server: origin)).value
  }
}
