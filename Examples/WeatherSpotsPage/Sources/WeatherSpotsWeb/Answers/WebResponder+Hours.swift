import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// The most spots of one question for the present hour.
  static let mostHours = 50
  /// The most spots of one question that waits for newer data: those of one request to the weather service.
  static let mostWaiting = OpenMeteoProvider.placesPerRequest

  /// Returns the weather of the present hour of some spots, in their order, without the spots that are gone.
  ///
  /// A request that does not wait gets the stored forecasts, and the weather service is not asked for anything. A request that waits gets
  /// newer ones.
  func hours(_ query: RequestQuery, _ request: Request) async throws -> Response {
    let waits = try waits(query)
    let (ids, most) = (try query.texts("ids"), waits ? Self.mostWaiting : Self.mostHours)
    guard (1...most).contains(ids.count) else {
      throw HTTPProblem(.badRequest, detail: "Expected 1 to \(most) ids, found \(ids.count); ask for more by several requests.")
    }
    let spots = try ids.compactMap { try stored($0)?.spot }
    let policy = waits ? options.waitingPolicy : .cacheOnly
    // All at once: places that wait at the same time share a request to the service.
    let rows = try await withThrowingTaskGroup(of: (Int, PresentHour).self) { [weather] group in
      for (index, spot) in spots.enumerated() { group.addTask { (index, try await weather.presentHour(of: spot, policy: policy)) } }
      return try await group.reduce(into: [(Int, PresentHour)]()) { $0.append($1) }
    }
    return try json(rows.sorted { $0.0 < $1.0 }.map(\.1), fields: [.cacheControl: "no-store"], request)
  }

  /// Returns whether a request waits for newer data.
  func waits(_ query: RequestQuery) throws -> Bool {
    guard let text = try query.text("wait") else { return false }
    guard ["true", "false"].contains(text) else { throw HTTPProblem(.badRequest, detail: "Expected true or false for wait.") }
    return text == "true"
  }
}
