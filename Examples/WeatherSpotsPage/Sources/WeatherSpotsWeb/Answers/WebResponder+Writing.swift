import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// Stores a spot where it is at the revision that its writer knows; once, however often it comes with the same key.
  func put(_ id: String, _ request: Request) async throws -> Response {
    let expectation = try Precondition.expectation(of: request)
    let key = try Precondition.key(of: request)
    let spot = try SpotBody.spot(id, in: try await bounds.body(of: request))
    // A spot that is not there yet can lose nothing; one that is there can.
    let done = try await race(id) {
      try await storage.put(spot, expecting: expectation ?? .absent, key: key)
    } orLost: {
      expectation == nil ? HTTPProblem(.preconditionRequired, detail: "Expected If-Match with the revision that was read.") : nil
    }
    // What was written, or what has become of it since by a later write.
    guard let row = try row(id) else { throw Self.noSpot }
    return try json(row.row, status: done.isNew ? .created : .ok, tag: "\"\(row.revision)\"", fields: [.cacheControl: "no-cache"], request)
  }

  /// Removes a spot, where it is at the revision that its writer knows if that says one.
  func delete(_ id: String, _ request: Request) async throws -> Response {
    let expectation = try Precondition.expectation(of: request) ?? .anything
    guard try stored(id) != nil else { throw Self.noSpot }
    let wasThere = try await race(id) {
      try await storage.remove(id, expecting: expectation)
    } orLost: {
      nil
    }
    guard wasThere else { throw Self.noSpot }
    return Response(status: .noContent)
  }

  /// Writes, or says which spot was there first.
  private func race<Value>(_ id: String, _ write: () async throws -> Value, orLost problem: () -> HTTPProblem?) async throws -> Value {
    do { return try await write() } catch RepositoryError.Code.revisionMismatch {
      if let problem = problem() { throw problem }
      let current = try row(id).map { try ReportJSON.text($0.row) }
      throw HTTPProblem(
        .preconditionFailed, detail: "Expected the newest revision, found an older one: another change came first.",
        members: ["current": current.map { .encoded($0) } ?? .null])
    } catch { throw error }
  }
}
