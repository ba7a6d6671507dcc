import Foundation
import Larder

/// The geocoding service.
struct GeocodingSource: RemoteSource {
  let client: OpenMeteoClient

  func fetch(_ question: Geocoding.Question, validator: String?) async throws -> Fetched<[FoundPlace]> {
    var items = [("name", question.name), ("count", "\(question.count)"), ("language", question.language), ("format", "json")]
    if !question.country.isEmpty { items.append(("countryCode", question.country)) }
    let places: [FoundPlace]
    do throws(ProviderError) {
      places = try await client.get(client.servers.url(client.servers.geocoding, "/v1/search", items), Self.places)
    } catch { throw error.asCancellation }
    return places.isEmpty ? .absent(reason: "no such place") : .value(places)
  }

  /// Reads an answer; the service leaves the list out when it is empty.
  static func places(_ response: TransportResponse) throws(ProviderError) -> [FoundPlace] {
    let body: Body
    do { body = try JSONDecoder().decode(Body.self, from: response.body) } catch {
      throw OpenMeteoResponse.errorOfInvalidJSON(response)
    }
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

    /// The hit as a place whose texts a terminal can show; one without a zone is of no use here.
    var place: FoundPlace? {
      guard let timezone, Coordinate(latitude: latitude, longitude: longitude) != nil else { return nil }
      func shown(_ text: String) -> String { String(text.filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" }) }
      return FoundPlace(
        name: shown(name), latitude: latitude, longitude: longitude, elevationMeters: elevation, timezone: shown(timezone),
        country: country.map(shown), countryCode: countryCode.map(shown), region: admin1.map(shown), population: population, geonameID: id)
    }
  }
}

/// The zone of a point, which the weather service names when it is asked for its own choice.
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
    var names = ZoneNames()
    guard let name = answer.timezone, names.contains(name) else { throw ProviderError.malformed("no zone that is known here") }
    return .value(name)
  }
}
