import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// Maximum number of spots in one request for the present hour.
  static let mostHours = 50
  /// Maximum number of spots in one request with `wait=true`: as many as one request to the weather service takes.
  static let mostWaiting = OpenMeteoProvider.placesPerRequest

  /// Returns the weather of the present hour for the spots of `ids`, in their order, without spots that are not stored.
  ///
  /// Without `wait=true`, the response has the stored forecasts, and no request goes to the weather service. With it, the response has
  /// newer ones.
  func hours(_ query: RequestQuery, _ request: Request) async throws -> Response {
    let waits = try waits(query)
    let (ids, most) = (try query.texts("ids"), waits ? Self.mostWaiting : Self.mostHours)
    guard (1...most).contains(ids.count) else {
      throw HTTPProblem(.badRequest, detail: "Expected 1 to \(most) ids, found \(ids.count); ask for more by several requests.")
    }
    // An id whose spot was removed is left out: the client may send a list that is older than the removal.
    let spots = try ids.compactMap { try stored($0)?.spot }
    let policy = waits ? options.waitingPolicy : .cacheOnly
    // All tasks start at once, because places that wait at the same time share one request to the service.
    let rows = try await withThrowingTaskGroup(of: (Int, PresentHour).self) { [weather] group in
      for (index, spot) in spots.enumerated() { group.addTask { (index, try await weather.presentHour(of: spot, policy: policy)) } }
      return try await group.reduce(into: [(Int, PresentHour)]()) { $0.append($1) }
    }
    // Tasks of a group finish in any order.
    return try json(rows.sorted { $0.0 < $1.0 }.map(\.1), fields: [.cacheControl: "no-store"], request)
  }

  /// Returns whether a request has `wait=true`.
  ///
  /// - Throws: `HTTPProblem` with 400 for a value other than `true` and `false`.
  func waits(_ query: RequestQuery) throws -> Bool {
    guard let text = try query.text("wait") else { return false }
    guard ["true", "false"].contains(text) else { throw HTTPProblem(.badRequest, detail: "Expected true or false for wait.") }
    return text == "true"
  }
}
