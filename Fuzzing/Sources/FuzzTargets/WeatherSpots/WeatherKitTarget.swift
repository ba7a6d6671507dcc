import Foundation
@testable import WeatherSpotsKit

/// Answers of WeatherKit, failures of them, and its marks.
///
/// The first byte of an input says which of them the rest is.
enum WeatherKitTarget {
  private static let statuses = [400, 401, 404, 429, 503]

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let choice = input.int(below: 256)
    let body = Data(input.rest)
    switch choice % 8 {
    case 0:
      let response = TransportResponse(status: statuses[choice / 8 % statuses.count], body: body)
      try AnswerCheck.check(WeatherKitResponse.error(response, at: Date(timeIntervalSince1970: 1_782_907_200)))
    case 1:
      let marks: [String: URL]
      do throws(ProviderError) {
        marks = try WeatherKitAttribution(body, server: WeatherKitProvider.server).marks
      } catch { return try AnswerCheck.check(error) }
      try promise(marks.values.allSatisfy { $0.host() == WeatherKitProvider.server.host() }, "a mark is on another server: \(marks)")
    default:
      let response: WeatherKitResponse
      do throws(ProviderError) { response = try WeatherKitResponse(body) } catch { return try AnswerCheck.check(error) }
      let zone = AnswerCheck.zones[choice % 4]
      let answer = response.answer(to: [.current, .hourly, .daily, .alerts], in: zone, AnswerCheck.provenance)
      try AnswerCheck.check(answer)
      try check(answer.alerts)
    }
  }

  /// Checks that the texts of warnings can be shown.
  private static func check(_ alerts: ProviderAnswer.Part<WeatherAlerts>?) throws {
    guard case .data(let alerts, _) = alerts else { return }
    for alert in alerts.alerts {
      let texts = [alert.summary, alert.areaName ?? "", alert.source, alert.severity, alert.urgency ?? "", alert.certainty ?? ""]
      try promise(texts.allSatisfy(AnswerCheck.isOneLine), "a warning has a text that a terminal cannot show")
    }
  }
}
