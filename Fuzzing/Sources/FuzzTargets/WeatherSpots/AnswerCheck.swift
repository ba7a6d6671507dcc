import Foundation
@testable import Larder
@testable import WeatherSpotsKit

/// A check of what the answers of all weather services have in common.
enum AnswerCheck {
  static let provenance = Provenance(provider: "fuzzing", server: "localhost", isRecorded: true)

  /// The zones that days are counted in, with some that are far from Greenwich.
  static let zones = ["GMT", "Europe/Paris", "Pacific/Apia", "America/St_Johns"].map { TimeZone(identifier: $0) ?? .gmt }

  /// Checks that an answer is kept as it is, and that its rows are in order.
  static func check(_ answer: ProviderAnswer) throws {
    try checkStoring(answer)
    try [answer.current?.failure, answer.hourly?.failure, answer.daily?.failure, answer.alerts?.failure, answer.marine?.failure]
      .compactMap { $0 }.forEach(check)
    if case .data(let current, _) = answer.current { try check([current.conditions]) }
    if case .data(let forecast, _) = answer.hourly { try check(forecast.hours) }
    if case .data(let forecast, _) = answer.daily { try checkOrder(forecast.days.map(\.day)) }
    if case .data(let forecast, _) = answer.marine { try checkOrder(forecast.hours.map(\.instant)) }
  }

  /// Checks that a failure is kept as it is, and that it is said on one line.
  static func check(_ error: ProviderError) throws {
    try checkStoring(error)
    try promise(isOneLine(error.description), "a failure has a text that a terminal cannot show: \(error.description.debugDescription)")
  }

  private static func check(_ hours: [WeatherHour]) throws {
    try checkOrder(hours.map(\.instant))
    try promise(hours.allSatisfy { isOneLine($0.words ?? "") }, "an hour has words that a terminal cannot show")
  }

  private static func checkOrder(_ rows: [some Comparable]) throws {
    try promise(zip(rows, rows.dropFirst()).allSatisfy { $0 <= $1 }, "rows are not in order")
  }

  /// Checks that a value is read from a store as it was written.
  static func checkStoring<Value: Codable>(_ value: Value) throws {
    let encoder = DirectEncoder(depthLimit: StoreOptions.Limits.maximumDepth)
    let json = try encoder.encode(value).json
    let again = try encoder.encode(DirectDecoder().decode(Value.self, from: json)).json
    try promise(again == json, "\(String(decoding: json, as: UTF8.self)) is read as \(String(decoding: again, as: UTF8.self))")
  }

  /// Whether a text moves no terminal's cursor.
  static func isOneLine(_ text: String) -> Bool { text.allSatisfy { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" } }
}
