import Foundation
import Hummingbird
import WeatherSpotsKit

/// A spot as a client writes it: a row with all its values; what a question has found out beside them is ignored.
struct SpotBody: Decodable {
  private let id: String
  private let name: String
  private let latitude: Double
  private let longitude: Double
  private let timezone: String
  private let country: String
  private let kind: String
  private let source: String
  private let rating: Int
  private let notes: String
  private let tags: [String]
  private let visits: Int

  /// Reads the spot of an id.
  ///
  /// - Throws: `WebProblem` with 400 for what is no JSON of an object, 422 for one with a value missing or of another kind, or of another
  ///   id, or with values that cannot be: all of them are named.
  static func spot(_ id: String, in data: Data) throws -> Spot {
    let body: SpotBody
    do { body = try JSONDecoder().decode(SpotBody.self, from: data) } catch DecodingError.keyNotFound(let key, _) {
      throw WebProblem(.unprocessableContent, "Expected every value of a spot, found none for \(key.stringValue).", field: key.stringValue)
    } catch DecodingError.typeMismatch(_, let context) {
      throw Self.mismatch(context)
    } catch DecodingError.valueNotFound(_, let context) {
      throw Self.mismatch(context)
    } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
      throw Self.mismatch(context)
    } catch {
      throw WebProblem(.badRequest, "Expected a spot in JSON, found another text.")
    }
    let spot: Spot
    do throws(SpotProblem) { spot = try body.spot() } catch {
      let problems = body.problems
      throw WebProblem(problems.isEmpty ? [error] : problems)
    }
    guard body.id == id, spot.id == id else {
      throw WebProblem(.unprocessableContent, "Expected the id of the path: the name and the coordinates of a spot stay.", field: "id")
    }
    return spot
  }

  /// Returns the spot.
  ///
  /// - Parameter field: The one value to take; every other one is then such that it can be. `nil` takes all.
  private func spot(of field: SpotField? = nil) throws(SpotProblem) -> Spot {
    func value<Value>(_ own: SpotField, _ value: Value, else sound: Value) -> Value { field ?? own == own ? value : sound }
    return try Spot(
      name: value(.name, name, else: "A"), latitude: value(.latitude, latitude, else: 0), longitude: value(.longitude, longitude, else: 0),
      timezone: value(.timezone, timezone, else: "GMT"), country: value(.country, country, else: ""), kind: value(.kind, kind, else: ""),
      source: value(.source, source, else: ""), rating: value(.rating, rating, else: 0), notes: value(.notes, notes, else: ""),
      tags: value(.tags, tags, else: []), visits: value(.visits, visits, else: 0))
  }

  /// The first problem of each value.
  private var problems: [SpotProblem] {
    SpotField.allCases.compactMap { field in
      do throws(SpotProblem) { _ = try spot(of: field) } catch { return error }
      return nil
    }
  }

  private static func mismatch(_ context: DecodingError.Context) -> WebProblem {
    guard let field = context.codingPath.first?.stringValue else {
      return WebProblem(.badRequest, "Expected an object in JSON, found another value.")
    }
    return WebProblem(.unprocessableContent, "Expected another kind of value for \(field).", field: field)
  }
}
