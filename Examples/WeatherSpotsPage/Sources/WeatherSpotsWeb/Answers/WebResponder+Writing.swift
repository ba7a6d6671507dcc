import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// Stores a spot if its revision is the one that `If-Match` names.
  ///
  /// Repeated requests with the same `Idempotency-Key` write once.
  func put(_ id: String, _ request: Request) async throws -> Response {
    let expectation = try Precondition.expectation(of: request)
    let key = try Precondition.key(of: request)
    let spot = try SpotBody.spot(id, in: try await bounds.body(of: request))
    // Without a precondition only a new spot is written. An existing one could lose a change that the writer has not seen.
    let done = try await race(id) {
      try await storage.put(spot, expecting: expectation ?? .absent, key: key)
    } orLost: {
      expectation == nil ? HTTPProblem(.preconditionRequired, detail: "Expected If-Match with the revision that was read.") : nil
    }
    // Read again: a repeated write, or one that another write has followed, answers with the present values and their revision.
    guard let row = try row(id) else { throw Self.noSpot }
    return try json(row.row, status: done.isNew ? .created : .ok, tag: "\"\(row.revision)\"", fields: [.cacheControl: "no-cache"], request)
  }

  /// Removes a spot.
  ///
  /// With `If-Match`, the spot is removed only if its revision is the one that is named.
  func delete(_ id: String, _ request: Request) async throws -> Response {
    let expectation = try Precondition.expectation(of: request) ?? .anything
    // An id that cannot be a key is 404 here. The store would throw `.invalidKey` for it, which becomes 422.
    guard try stored(id) != nil else { throw Self.noSpot }
    let wasThere = try await race(id) {
      try await storage.remove(id, expecting: expectation)
    } orLost: {
      nil
    }
    guard wasThere else { throw Self.noSpot }
    return Response(status: .noContent)
  }

  /// Runs `write`, and turns a revision mismatch into a problem that has the current spot.
  private func race<Value>(_ id: String, _ write: () async throws -> Value, orLost problem: () -> HTTPProblem?) async throws -> Value {
    do { return try await write() } catch RepositoryError.Code.revisionMismatch {
      if let problem = problem() { throw problem }
      // The writer can merge with the current spot and try again, without another request.
      let current = try row(id).map { try ReportJSON.text($0.row) }
      throw HTTPProblem(
        .preconditionFailed, detail: "Expected the newest revision, found an older one: another change came first.",
        members: ["current": current.map { .encoded($0) } ?? .null])
    } catch { throw error }
  }
}
