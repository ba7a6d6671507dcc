import Foundation
import Larder

/// Remote source of places, which searches Open-Meteo's geocoding service by name.
struct GeocodingSource: RemoteSource {
  let client: OpenMeteoClient

  func fetch(_ question: Geocoding.Question, validator: String?) async throws -> Fetched<[FoundPlace]> {
    var items = [("name", question.name), ("count", "\(question.count)"), ("language", question.language), ("format", "json")]
    if !question.country.isEmpty { items.append(("countryCode", question.country)) }
    let places: [FoundPlace]
    // `asCancellation`: a cancelled caller must not count as a failure of the host.
    do throws(ProviderError) {
      places = try await client.get(client.servers.url(client.servers.geocoding, "/v1/search", items), Self.places)
    } catch { throw error.asCancellation }
    // An absence and not an empty list, so that it gets the shorter lifetime of absences: the name may be added soon.
    return places.isEmpty ? .absent(reason: "no such place") : .value(places)
  }

  /// Reads the places of a geocoding response.
  ///
  /// The service omits the list of results when it is empty.
  static func places(_ response: TransportResponse) throws(ProviderError) -> [FoundPlace] {
    let body: Body
    do { body = try JSONDecoder().decode(Body.self, from: response.body) } catch {
      throw OpenMeteoResponse.errorOfInvalidJSON(response)
    }
    // A JSON error has no list either, and without this check would be cached as "no such place".
    guard response.status == 200, body.error != true else {
      throw OpenMeteoResponse.error(response, reason: body.reason ?? "no reason given")
    }
    return (body.results ?? []).compactMap(\.place)
  }

  private struct Body: Decodable {
    let results: [Hit]?
    let error: Bool?
    let reason: String?
  }

  private struct Hit: Decodable {
    let id: Int
    let name: String
    let latitude: Double
    let longitude: Double
    let elevation: Double?
    let timezone: String?
    let country: String?
    let countryCode: String?
    let admin1: String?
    let population: Int?

    enum CodingKeys: String, CodingKey {
      case countryCode = "country_code"
      case id, name, latitude, longitude, elevation, timezone, country, admin1, population
    }

    /// Found place with texts that are safe to show in a terminal, or `nil` without a time zone or valid coordinates.
    ///
    /// A forecast needs the zone to cut hours into days.
    var place: FoundPlace? {
      guard let timezone, Coordinate(latitude: latitude, longitude: longitude) != nil else { return nil }
      // Control characters in a name could move the cursor of the terminal.
      func shown(_ text: String) -> String { String(text.filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" }) }
      return FoundPlace(
        name: shown(name), latitude: latitude, longitude: longitude, elevationMeters: elevation, timezone: shown(timezone),
        country: country.map(shown), countryCode: countryCode.map(shown), region: admin1.map(shown), population: population, geonameID: id)
    }
  }
}

/// Remote source of time zones.
///
/// The forecast service returns the zone of a point when the request has `timezone=auto`.
struct ZoneSource: RemoteSource {
  let client: OpenMeteoClient

  func fetch(_ key: Geocoding.ZoneKey, validator: String?) async throws -> Fetched<String> {
    let cell = key.cell
    let items = [
      ("latitude", cell.center.latitude.text(decimals: 5)), ("longitude", cell.center.longitude.text(decimals: 5)), ("timezone", "auto"),
    ]
    let answer: OpenMeteoResponse
    do throws(ProviderError) {
      answer = try await client.get(client.servers.url(client.servers.forecast, "/v1/forecast", items), OpenMeteoResponse.init)
    } catch { throw error.asCancellation }
    // Without the check a name that this system cannot resolve would be cached for a year.
    guard let name = answer.timezone, TimeZone.named(name) != nil else { throw ProviderError.malformed("no zone that is known here") }
    return .value(name)
  }
}
