import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import NIOCore
import WeatherSpotsKit

/// Name of a field with an invalid value, and the reason.
struct SpotValueProblem {
  let field: String
  let detail: String
}

extension SpotValueProblem {
  init(_ problem: SpotProblem) { self.init(field: problem.field.rawValue, detail: problem.description) }
}

extension HTTPProblem {
  /// Creates the problem of status 422 for a spot with invalid values.
  ///
  /// Its member `field` names the first invalid field, and `errors` lists all of them.
  init(_ values: [SpotValueProblem]) {
    let words = values.map(\.detail).joined(separator: "; ")
    self.init(.unprocessableContent, detail: "Expected values of a spot, found problems: \(words).")
    if let field = values.first?.field { members["field"] = .text(field) }
    if !values.isEmpty { members["errors"] = .list(values.map { .object(["field": .text($0.field), "detail": .text($0.detail)]) }) }
  }

  /// Creates the problem with which a request is answered after an error.
  init(answering error: any Error) {
    switch error {
    // Problems of this server have no type and go out as they are. Those of BoundedHTTP have one, and get the words of the page.
    case let problem as HTTPProblem where problem.type == "about:blank": self = problem
    case let problem as HTTPProblem: self.init(rewording: problem)
    case let problem as SpotProblem: self.init([SpotValueProblem(problem)])
    case let error as RepositoryError: self.init(error)
    // The description of an unknown error could have paths of this machine, so it is not sent.
    default: self.init(.serviceUnavailable, detail: "Expected an answer, found a failure; ask again.", retryAfter: 1)
    }
  }

  /// Creates a problem with the status and the retry time of a problem of BoundedHTTP, in words for people.
  private init(rewording problem: HTTPProblem) {
    let detail =
      switch problem.status {
      case .badRequest: "Not understood: \(problem.detail ?? "")."
      case .contentTooLarge: "Expected a smaller body."
      default: problem.detail ?? "Not now; ask again."
      }
    self.init(problem.status, detail: detail, retryAfter: problem.retryAfter)
  }

  private init(_ error: RepositoryError) {
    switch error.code {
    case .invalidKey, .tooLarge:
      self.init(.unprocessableContent, detail: "Expected a spot within the limits of the store, found a larger one.")
    // Thrown by `put` for a key that belongs to a write of another spot or of other values.
    case .alreadyExists:
      self.init(.unprocessableContent, detail: "Expected an Idempotency-Key of this write's own, found that of another write.")
    case .full:
      self.init(
        HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"),
        detail: "Expected room on the disk, found none; nothing was changed.")
    case .locked: self.init(.serviceUnavailable, detail: "Expected the store, found another process at it; ask again.", retryAfter: 1)
    case .closed, .cancelled: self.init(.serviceUnavailable, detail: "The server ends.", retryAfter: 5)
    // A retry alone does not help: a poisoned store takes no write until it is opened again.
    case .outcomeUnknown, .poisoned:
      self.init(.serviceUnavailable, detail: "The last change may or may not be stored; start the server again.", retryAfter: 10)
    default:
      self.init(.serviceUnavailable, detail: "Expected the store to answer, found \(error.code); ask again.", retryAfter: 1)
    }
  }

  /// Response with the problem as JSON, which ends with a line feed like all JSON of this server.
  var response: Response {
    var response = Answer.problem(self)
    response.body = ResponseBody(byteBuffer: ByteBuffer(bytes: json + [UInt8(ascii: "\n")]))
    return response
  }
}
