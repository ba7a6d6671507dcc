internal import BoundedHTTP
internal import HTTPTypes
internal import Larder
internal import LarderWire

extension HTTPProblem {
  /// Creates the answer to a request that is refused with a problem of sync.
  init(_ problem: SyncProblem) {
    var object: JSONObject = [:]
    // LarderWire defines the type URI, the title and the members. A copy of them here could differ.
    do throws(RepositoryError) { object = try JSONValue(json: problem.json).objectValue ?? [:] } catch {}
    self.init(
      HTTPResponse.Status(code: problem.status), type: object["type"]?.stringValue ?? "about:blank", title: object["title"]?.stringValue,
      detail: object["detail"]?.stringValue)
    for name in object.names where !["type", "title", "status", "detail"].contains(name) {
      members[name] = object[name].map { .encoded(String(decoding: $0.json, as: UTF8.self)) }
    }
    switch problem {
    // Rounded up, since a client that returns a fraction early is refused again.
    case .unavailable(let seconds), .tooManyRequests(let seconds): retryAfter = Int((seconds ?? 1).rounded(.up))
    default: break
    }
  }
}
