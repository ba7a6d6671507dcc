import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// Maximum number of spots in one page of a list.
  static let mostSpots = 1_000

  /// Returns one page of the list of spots, filtered and sorted as the query of the request says.
  func spots(_ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let order = SpotOrder(rawValue: try query.text("sort") ?? "name") else {
      throw HTTPProblem(.badRequest, detail: "Expected name, country, kind or rating for sort.")
    }
    let question = Query.spots(try filter(query), by: order)
    let page = try query.text("page")
    let cursor = try page.map { token throws(HTTPProblem) in
      guard let cursor = PageCursor(token: token) else {
        throw HTTPProblem(.notFound, detail: "Expected the page of a link, found another one.")
      }
      return cursor
    }
    let limit = try limit(query, Self.mostSpots)
    // Parameters in one order and without unknown ones, so that equal requests share one cached body.
    let asked = try ["country", "kind", "min_rating", "tag", "sort", "limit"].compactMap { name in
      let values = name == "tag" ? try query.texts(name) : try query.text(name).map { [$0] } ?? []
      return values.isEmpty ? nil : "\(name)=\(values.map(\.escaped).joined(separator: ","))"
    }
    // Read before the page: a client that follows the changes since this revision then misses none.
    let revision = storage.spots.snapshot.revision
    let body = try await answers.body(of: (asked + [page ?? ""]).joined(separator: "&"), version: "\(revision)") {
      let found: Page<Spot>
      do { found = try await storage.spots.page(question, after: cursor, limit: limit) } catch RepositoryError.Code.unsupported
        // A token of another sort order is a mistake of the client. Without a token, the error is one of the server.
        where cursor != nil
      {
        throw HTTPProblem(.notFound, detail: "Expected a page of this order, found one of another.")
      } catch { throw error }
      var fields: HTTPFields = [
        .cacheControl: "no-cache", .eTag: "W/\"\(storeName)-\(revision)\"", .larderRevision: "\(revision)", .larderStore: storeName,
      ]
      if let next = found.next {
        fields[.link] = "</api/spots?\((asked + ["page=\(try next.token)"]).joined(separator: "&"))>; rel=\"next\""
      }
      return try await bounds.work { [fields] () throws in
        let texts = try present(found.items).map { try rows.text(of: $0.spot, at: $0.revision) }
        return AnswerCache.Body(Data("[\(texts.joined(separator: ","))]\n".utf8), fields)
      }
    }
    return kept(body, request)
  }

  /// First 8 characters of the id of the store, by which a client detects another store behind the same address.
  var storeName: String { String("\(storage.store.openReport.storeID)".prefix(8)) }

  /// Returns the current values and revisions of spots from one snapshot, without spots that have been removed.
  ///
  /// A newer revision beside older values would let a writer overwrite a change that it has not seen.
  private func present(_ found: [Spot]) throws -> [(spot: Spot, revision: Revision)] {
    let snapshot = storage.spots.snapshot
    return try found.compactMap { spot in
      guard let now = try snapshot.find(by: spot.id), let revision = snapshot.revision(of: spot.id) else { return nil }
      return (now, revision)
    }
  }

  /// Returns the spots around the point `lat`, `lon`, the nearest first.
  func near(_ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let latitude = try degrees("lat", query), let longitude = try degrees("lon", query),
      let point = Coordinate(latitude: latitude, longitude: longitude)
    else { throw HTTPProblem(.badRequest, detail: "Expected lat and lon in degrees, such as lat=48.4&lon=-4.5.") }
    let within = try degrees("within", query)
    guard within.map({ $0 >= 0 }) ?? true else { throw HTTPProblem(.badRequest, detail: "Expected kilometres from 0 for within.") }
    let question = Query.spots(near: point, within: within.map(Distance.kilometers), try filter(query)).limit(try limit(query, 10))
    let matches = try await storage.spots.matches(question)
    // Looked up by id: `present` leaves out spots that are gone by now, so positions in the two lists may differ.
    let distances = Dictionary(matches.map { ($0.item.id, $0.distance.map { $0.meters / 1000 }) }) { first, _ in first }
    let rows = try present(matches.map(\.item)).map { SpotRow($0.spot, kilometers: distances[$0.spot.id] ?? nil, revision: $0.revision) }
    return try json(rows, request)
  }

  /// Returns the spots that contain the words of `q`, the best match first.
  func search(_ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let words = try query.text("q") else { throw HTTPProblem(.badRequest, detail: "Expected words for q.") }
    let question = Query.spots(matching: words, try filter(query)).limit(try limit(query, 20))
    let matches = try await storage.spots.matches(question)
    let extracts = Dictionary(matches.map { ($0.item.id, $0.extract) }) { first, _ in first }
    let rows = try present(matches.map(\.item)).map { SpotRow($0.spot, extract: extracts[$0.spot.id] ?? nil, revision: $0.revision) }
    return try json(rows, request)
  }

  /// Returns one spot with its revision as a strong entity tag.
  func spot(_ id: String, _ request: Request) async throws -> Response {
    guard let row = try row(id) else { throw Self.noSpot }
    // If-Match compares strongly (RFC 9110, 13.1.1), so a tag for writing must be strong.
    return try json(row.row, tag: "\"\(row.revision)\"", fields: [.cacheControl: "no-cache"], request)
  }

  static let noSpot = HTTPProblem(.notFound, detail: "There is no such spot.")

  /// Returns a spot and its revision from one snapshot, or `nil` if there is no such spot.
  func stored(_ id: String) throws -> (spot: Spot, revision: Revision)? {
    let snapshot = storage.spots.snapshot
    do throws(RepositoryError) {
      guard let spot = try snapshot.find(by: id), let revision = snapshot.revision(of: id) else { return nil }
      return (spot, revision)
    } catch {
      // An id of the path that cannot be a key belongs to no spot: the answer is 404 and not 422.
      if error.code == .invalidKey || error.code == .tooLarge { return nil }
      throw error
    }
  }

  /// Returns a spot in the form of the responses, with its revision, or `nil` if there is no such spot.
  func row(_ id: String) throws -> (row: SpotRow, revision: Revision)? {
    try stored(id).map { (SpotRow($0.spot, revision: $0.revision), $0.revision) }
  }

  private func filter(_ query: RequestQuery) throws -> SpotFilter {
    let rating = try query.number("min_rating")
    guard rating.map({ (0...5).contains($0) }) ?? true else { throw HTTPProblem(.badRequest, detail: "Expected 0 to 5 for min_rating.") }
    let tags = try query.texts("tag").map { text in
      // A text that is no valid tag is the tag of no spot: the list is empty, and no error is due.
      do throws(SpotProblem) { return try Spot.normalizedTag(text) } catch { return text }
    }
    return SpotFilter(country: try query.text("country"), kind: try query.text("kind"), minimumRating: rating, tags: tags)
  }

  private func limit(_ query: RequestQuery, _ usual: Int) throws -> Int {
    // A limit out of range is clamped: a list goes on at its link to the next page.
    min(max(try query.number("limit") ?? usual, 1), Self.mostSpots)
  }

  private func degrees(_ name: String, _ query: RequestQuery) throws -> Double? {
    guard let text = try query.text(name) else { return nil }
    // `Double` reads "nan" and "inf" too.
    guard let number = Double(text), number.isFinite else { throw HTTPProblem(.badRequest, detail: "Expected a number for \(name).") }
    return number
  }
}

extension HTTPField.Name {
  fileprivate static let larderRevision = HTTPField.Name("Larder-Revision") ?? .eTag
  fileprivate static let larderStore = HTTPField.Name("Larder-Store") ?? .eTag
  fileprivate static let link = HTTPField.Name("Link") ?? .location
}

extension String {
  /// Percent-encoded form for one part of a path or of a query.
  ///
  /// Only ASCII letters and digits stay.
  var escaped: String {
    // `.alphanumerics` has the letters of all scripts, and a URL takes only those of ASCII.
    addingPercentEncoding(withAllowedCharacters: .alphanumerics.intersection(.init(charactersIn: "\u{0}"..."\u{7F}"))) ?? ""
  }
}
