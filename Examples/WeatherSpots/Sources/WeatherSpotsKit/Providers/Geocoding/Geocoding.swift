// Geocoding/ finds places by name and the time zones of points. Results are cached for long, since places do not move.
// Invariant: a name without a match is an answer, an unreachable service is a failure. Called by the commands geocode and forecast.

import Foundation
public import Larder

/// A place found by its name.
public struct FoundPlace: Codable, Hashable, Sendable {
  /// Name of the place.
  public var name: String
  /// Latitude in degrees north.
  public var latitude: Double
  /// Longitude in degrees east.
  public var longitude: Double
  /// Elevation in metres above sea level.
  public var elevationMeters: Double?
  /// IANA name of the time zone.
  public var timezone: String
  /// Name of the country.
  public var country: String?
  /// ISO 3166 code of the country.
  public var countryCode: String?
  /// Name of the region in the country.
  public var region: String?
  /// Number of inhabitants.
  public var population: Int?
  /// Id of the place in the GeoNames database.
  public var geonameID: Int
}

/// A cached geocoder, which looks up places by name and time zones by point at Open-Meteo.
public struct Geocoding: Sendable {
  /// A search for places by name.
  public struct Question: Hashable, Codable, Sendable {
    /// Beginning of a name, at least two characters.
    public var name: String
    /// Largest number of places to return, 1 to 100.
    public var count: Int
    /// Language of the answer, such as en.
    public var language: String
    /// ISO 3166 code of the country to search, or an empty text for all countries.
    public var country: String
    /// Origin of the server, or `nil` for Open-Meteo's own.
    ///
    /// As a part of the cache key it keeps the answers of different servers apart.
    var server: String?

    /// Creates a search, with the count brought into its range.
    public init(_ name: String, count: Int = 10, language: String = "en", country: String = "") {
      // The search is a cache key: equal names in different Unicode forms must share one entry.
      self.name = name.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
      self.count = min(max(count, 1), 100)
      self.language = language
      // One spelling of a country for one cache entry.
      self.country = country.uppercased()
    }
  }

  let places: CachedRepository<Question, [FoundPlace]>
  let zones: CachedRepository<ZoneKey, String>
  let clock: any WallClock
  private let origin: String?

  /// Cache key of a time zone: a grid cell, and the origin of the server if it is not Open-Meteo's.
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

  /// Creates a geocoder that caches its answers in a store.
  ///
  /// - Throws: `RepositoryError` if a collection cannot be opened.
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
      // Limits of its own: a geocoding host that is out must not open the breaker of the forecasts.
      source: GeocodingSource(client: client).limited(by: limits.of("geocoding")))
    zones = CachedRepository(
      storage: try await storage.store.repository(RepositorySchema("timezones")),
      freshness: FreshnessPolicy(fresh: .hours(365 * 24), usable: .hours(10 * 365 * 24)), eviction: EvictionPolicy(countLimit: 1000),
      // The limits of "forecast", since the forecast host answers for zones too.
      retry: retry, clock: clock, source: ZoneSource(client: client).limited(by: limits.of("forecast")))
  }

  /// Returns the places that match a name, the most likely first.
  ///
  /// Answers stay fresh for thirty days. A name without a match gives an empty list and no error.
  /// - Throws: ``ProviderError``, `CacheError`.
  public func places(_ question: Question, policy: FetchPolicy = .cacheFirst) async throws -> Cached<[FoundPlace]> {
    var question = question
    // Set here and not by the caller, so that no search can be cached under another server.
    question.server = origin
    // The cache reports a stored absence as an error. Here it is an answer: no such place.
    do { return try await places.value(for: question, policy: policy) } catch CacheError.absent(_, let since) {
      return Cached(value: [], fetchedAt: since, age: .zero, state: .fresh, origin: .disk)
    }
  }

  /// Returns the IANA name of the time zone at a point.
  ///
  /// - Throws: ``ProviderError``, `CacheError`.
  public func zone(of point: Coordinate) async throws -> String {
    try await zones.value(for: ZoneKey(GridCell(point), server: origin)).value
  }
}
