import Foundation
@testable import WeatherSpotsKit

/// Answers of Open-Meteo: weather, sea and places, failures of them, and the header that says how long to wait.
///
/// The first byte of an input says which of them the rest is, and the status that it comes with.
enum OpenMeteoTarget {
  private static let statuses = [200, 200, 200, 400, 401, 429, 503]

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let choice = input.int(below: 256)
    let response = TransportResponse(status: statuses[choice / 8 % statuses.count], body: Data(input.rest))
    switch choice % 8 {
    case 0: try checkWait(String(decoding: input.rest, as: UTF8.self))
    case 1: try checkPlaces(response)
    default: try checkWeather(response, in: AnswerCheck.zones[choice % 4])
    }
  }

  private static func checkWeather(_ response: TransportResponse, in zone: TimeZone) throws {
    let answers: [OpenMeteoResponse]
    do throws(ProviderError) { answers = try OpenMeteoResponse.places(response) } catch { return try AnswerCheck.check(error) }
    try promise(response.status == 200, "an answer with the status \(response.status) has weather")
    for answer in answers {
      try AnswerCheck.check(answer.answer(to: [.current, .hourly, .daily], in: zone, AnswerCheck.provenance))
      try AnswerCheck.check(answer.marineAnswer(AnswerCheck.provenance))
    }
  }

  private static func checkPlaces(_ response: TransportResponse) throws {
    let places: [FoundPlace]
    do throws(ProviderError) { places = try GeocodingSource.places(response) } catch { return try AnswerCheck.check(error) }
    try promise(response.status == 200, "an answer with the status \(response.status) has places")
    try AnswerCheck.checkStoring(places)
    for place in places {
      let texts = [place.name, place.timezone, place.country ?? "", place.countryCode ?? "", place.region ?? ""]
      try promise(texts.allSatisfy(AnswerCheck.isOneLine), "a place has a text that a terminal cannot show")
      try promise(Coordinate(latitude: place.latitude, longitude: place.longitude) != nil, "a place is not on the globe")
    }
  }

  private static func checkWait(_ text: String) throws {
    guard let wait = RetryAfter.wait(text, at: Date(timeIntervalSince1970: 784_111_777)) else { return }
    try promise((.zero ... .seconds(86400)).contains(wait), "a service asks for a wait of \(wait)")
  }
}
