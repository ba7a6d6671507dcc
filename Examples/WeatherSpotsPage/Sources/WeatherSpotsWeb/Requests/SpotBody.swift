import BoundedHTTP
import Foundation
import Hummingbird
import WeatherSpotsKit

/// Spot in the body of a request: a row with all values of a spot.
///
/// Other members, such as a distance, are ignored.
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

  /// Problems of members that are missing or have another type.
  ///
  /// Each such member is read as a valid value, so that it causes no second problem.
  private var mismatches: [SpotValueProblem] = []

  private enum Key: String, CodingKey {
    case id, name, latitude, longitude, timezone, country, kind, source, rating, notes, tags, visits
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    var mismatches: [SpotValueProblem] = []
    // Decoding goes on after a mismatch, so that one response names every wrong value of the form.
    func value<Value: Decodable>(_ key: Key, _ kind: String, else sound: Value) -> Value {
      do { return try container.decode(Value.self, forKey: key) } catch {
        let found = container.contains(key) ? "is not \(kind)" : "is missing"
        mismatches.append(SpotValueProblem(field: key.rawValue, detail: "\(key.rawValue) \(found)"))
        return sound
      }
    }
    id = value(.id, "a text", else: "")
    name = value(.name, "a text", else: "A")
    latitude = value(.latitude, "a number", else: 0)
    longitude = value(.longitude, "a number", else: 0)
    timezone = value(.timezone, "a text", else: "GMT")
    country = value(.country, "a text", else: "")
    kind = value(.kind, "a text", else: "")
    source = value(.source, "a text", else: "")
    rating = value(.rating, "a whole number", else: 0)
    notes = value(.notes, "a text", else: "")
    tags = value(.tags, "a list of texts", else: [])
    visits = value(.visits, "a whole number", else: 0)
    self.mismatches = mismatches
  }

  /// Reads the spot with an id from the body of a request.
  ///
  /// - Throws: `HTTPProblem` with 400 for data that are no JSON object, and 422 for a value that is missing, invalid or of another type,
  ///   or for another id. The problem names all wrong values.
  static func spot(_ id: String, in data: Data) throws -> Spot {
    let body: SpotBody
    do { body = try JSONDecoder().decode(SpotBody.self, from: data) } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
      throw HTTPProblem(.badRequest, detail: "Expected an object in JSON, found another value.")
    } catch {
      throw HTTPProblem(.badRequest, detail: "Expected a spot in JSON, found another text.")
    }
    let problems = body.problems
    guard problems.isEmpty else { throw HTTPProblem(problems) }
    let spot = try body.spot()
    // A spot's id is made of its name and place. A changed name would store a second spot and leave the first.
    guard body.id == id, spot.id == id else {
      throw HTTPProblem(
        .unprocessableContent, detail: "Expected the id of the path: the name and the coordinates of a spot stay.",
        members: ["field": .text("id")])
    }
    return spot
  }

  /// Returns the spot, or a spot that has one value of the body.
  ///
  /// - Parameter field: The only value to take from the body. All others are then valid ones. `nil` takes all values of the body.
  /// - Throws: `SpotProblem` for the first invalid value.
  private func spot(of field: SpotField? = nil) throws(SpotProblem) -> Spot {
    func value<Value>(_ own: SpotField, _ value: Value, else sound: Value) -> Value { field ?? own == own ? value : sound }
    return try Spot(
      name: value(.name, name, else: "A"), latitude: value(.latitude, latitude, else: 0), longitude: value(.longitude, longitude, else: 0),
      timezone: value(.timezone, timezone, else: "GMT"), country: value(.country, country, else: ""), kind: value(.kind, kind, else: ""),
      source: value(.source, source, else: ""), rating: value(.rating, rating, else: 0), notes: value(.notes, notes, else: ""),
      tags: value(.tags, tags, else: []), visits: value(.visits, visits, else: 0))
  }

  /// First problem of each value, in the order of the columns.
  private var problems: [SpotValueProblem] {
    // `Spot` throws at its first invalid value. Testing one field at a time finds all of them.
    let unsound = SpotField.allCases.compactMap { field -> SpotValueProblem? in
      do throws(SpotProblem) { _ = try spot(of: field) } catch { return SpotValueProblem(error) }
      return nil
    }
    let order = ["id"] + SpotField.allCases.map(\.rawValue)
    // A field can have a problem in both lists. The page shows one message beside each field.
    return order.compactMap { name in (mismatches + unsound).first { $0.field == name } }
  }
}
