import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import LarderSync
import NIOCore
import WeatherSpotsKit

/// The reason why a request has no success, as it is answered: `application/problem+json` (RFC 9457).
struct WebProblem: Error {
  /// The status of HTTP.
  let status: HTTPResponse.Status
  /// A sentence with what was expected, what was found and what to do, and with nothing that the client has written.
  let detail: String
  /// The value at fault, the first of several.
  var field: String?
  /// The values of a spot that cannot be.
  private var problems: [Value] = []
  /// The spot as it is now, of a race that was lost.
  var current: Current?
  /// The seconds after which to ask again.
  var retryAfter: Int?

  /// A value of a spot that cannot be, and why.
  struct Value {
    let field: String
    let detail: String

    init(field: String, detail: String) { (self.field, self.detail) = (field, detail) }

    init(_ problem: SpotProblem) { self.init(field: problem.field.rawValue, detail: problem.description) }
  }

  /// A spot as it is now.
  enum Current {
    case row(SpotRow)
    case gone
  }

  init(_ status: HTTPResponse.Status, _ detail: String, field: String? = nil, retryAfter: Int? = nil) {
    (self.status, self.detail, self.field, self.retryAfter) = (status, detail, field, retryAfter)
  }

  /// Names the values of a spot that cannot be.
  init(_ problems: [Value]) {
    let words = problems.map(\.detail).joined(separator: "; ")
    self.init(.unprocessableContent, "Expected values of a spot, found problems: \(words).", field: problems.first?.field)
    self.problems = problems
  }

  /// Says what an error means for a client.
  init(_ error: any Error) {
    switch error {
    case let problem as WebProblem: self = problem
    case let problem as SpotProblem: self.init([Value(problem)])
    case let error as RepositoryError: self.init(error)
    case let problem as SyncProblem:
      self.init(Self.status(of: problem), Self.detail(of: problem))
      if case .unavailable(let seconds) = problem { retryAfter = Int((seconds ?? 1).rounded(.up)) }
    default: self.init(.serviceUnavailable, "Expected an answer, found a failure; ask again.", retryAfter: 1)
    }
  }

  private init(_ error: RepositoryError) {
    switch error.code {
    case .invalidKey, .tooLarge: self.init(.unprocessableContent, "Expected a spot within the limits of the store, found a larger one.")
    case .alreadyExists: self.init(.unprocessableContent, "Expected an Idempotency-Key of this write's own, found that of another write.")
    case .full:
      self.init(
        HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"), "Expected room on the disk, found none; nothing was changed.")
    case .locked: self.init(.serviceUnavailable, "Expected the store, found another process at it; ask again.", retryAfter: 1)
    case .closed, .cancelled: self.init(.serviceUnavailable, "The server ends.", retryAfter: 5)
    case .outcomeUnknown, .poisoned:
      self.init(.serviceUnavailable, "The last change may or may not be stored; start the server again.", retryAfter: 10)
    default: self.init(.serviceUnavailable, "Expected the store to answer, found \(error.code); ask again.", retryAfter: 1)
    }
  }

  private static func status(of problem: SyncProblem) -> HTTPResponse.Status {
    let known: [HTTPResponse.Status] = [
      .badRequest, .requestTimeout, .contentTooLarge, .unsupportedMediaType, .serviceUnavailable,
    ]
    return known.first { $0.code == problem.status } ?? HTTPResponse.Status(code: problem.status)
  }

  private static func detail(of problem: SyncProblem) -> String {
    switch problem {
    case .refused(_, let detail): detail
    case .malformed(let detail): "Not understood: \(detail)."
    case .tooLarge: "Expected a smaller body."
    default: "Not now; ask again."
    }
  }

  /// The answer.
  var response: Response {
    var row: JSONRow = [
      "type": "about:blank", "title": status.reasonPhrase, "status": status.code, "detail": detail,
    ]
    switch current {
    case .row(let spot): row = row.adding("current", spot)
    case .gone: row = row.adding("current", nil)
    case nil: break
    }
    if let field { row = row.adding("field", field) }
    if !problems.isEmpty {
      row = row.adding("errors", problems.map { ["field": $0.field, "detail": $0.detail] as JSONRow })
    }
    let body: Data
    do { body = try ReportJSON.data(row) } catch { body = Data() }
    var fields: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
    if let retryAfter { fields[.retryAfter] = String(retryAfter) }
    if status == .unauthorized { fields[.wwwAuthenticate] = "Bearer" }
    return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
