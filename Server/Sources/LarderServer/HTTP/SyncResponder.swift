internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import Logging

/// The answers to all requests.
struct SyncResponder: HTTPResponder {
  typealias Context = BasicRequestContext

  let store: SQLSyncStore
  let hub: HeadHub
  let authorizer: any Authorizer
  let validator: RecordValidator?
  let options: ServerOptions
  let rates: RequestRates
  let metrics: ServerMetrics
  let logger: Logger

  func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
    let start = ContinuousClock.now
    let route = Route(path: Self.path(of: request))
    let response: Response
    do throws(SyncProblem) { response = try await answer(request, route) } catch {
      let isWrongMethod = route.map { $0.method != request.method } ?? false
      response = Answer.problem(error, allow: isWrongMethod ? route?.method : nil)
    }
    let elapsed = (ContinuousClock.now - start).components
    let seconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    // Methods and paths that are not ours would fill memory and logs with what strangers write.
    let (template, method) = (
      route?.template ?? "other", route.map { $0.method == request.method } == true ? request.method.rawValue : "other"
    )
    metrics.note(template, method, status: response.status.code, seconds: seconds)
    logger.info(
      "answered",
      metadata: [
        "route": "\(template)", "method": "\(method)", "status": "\(response.status.code)",
        "milliseconds": "\(Int((seconds * 1_000).rounded(.up)))",
      ])
    return response
  }

  /// The path as it was sent, without what stands behind `?`.
  private static func path(of request: Request) -> String { String((request.head.path ?? "/").prefix { $0 != "?" }) }

  private static func query(of request: Request) throws(SyncProblem) -> RequestQuery {
    let path = request.head.path ?? ""
    return try RequestQuery(path.firstIndex(of: "?").map { String(path[path.index(after: $0)...]) })
  }

  private func answer(_ request: Request, _ route: Route?) async throws(SyncProblem) -> Response {
    guard let route else { throw .refused(status: 404, detail: "There is nothing at this path.") }
    guard request.method == route.method else { throw .refused(status: 405, detail: "Expected the method \(route.method.rawValue).") }
    switch route {
    case .health: return Answer.success(Data("ok\n".utf8), type: "text/plain")
    case .readiness:
      _ = try await store.heads(of: ["-"])
      return Answer.success(Data("ready\n".utf8), type: "text/plain")
    case .metrics: return Answer.success(Data(metrics.text(streams: hub.count).utf8), type: "text/plain; version=0.0.4")
    case .description: return Answer.success(ServerDescription.json)
    case .scopes:
      let identity = try await identity(of: request)
      try take(identity, device: nil)
      return try await scopes(of: identity)
    case .push(let scope):
      let identity = try await identity(of: request)
      try check(identity, scope, .write)
      return try await push(request, to: scope, by: identity)
    case .changes(let scope):
      let identity = try await identity(of: request)
      try check(identity, scope, .read)
      let question = try Self.query(of: request).changesRequest()
      try take(identity, device: question.device)
      return try await changes(question, in: scope, by: identity)
    case .events(let scope):
      let identity = try await identity(of: request)
      try check(identity, scope, .read)
      try take(identity, device: nil)
      return try await events(of: scope, request: request, token: token(of: request))
    }
  }

  private func token(of request: Request) -> String? {
    guard let header = request.headers[.authorization] else { return nil }
    let words = header.split(separator: " ")
    return words.count == 2 && words[0].lowercased() == "bearer" ? String(words[1]) : nil
  }

  private func identity(of request: Request) async throws(SyncProblem) -> Identity {
    if authorizer is NoAuthorizer { return try await authorizer.identity(of: "") }
    guard let token = token(of: request) else { throw .unauthorized }
    return try await authorizer.identity(of: token)
  }

  private func check(_ identity: Identity, _ scope: String, _ access: ScopeAccess) throws(SyncProblem) {
    try WireLimits.check(scope, named: "the scope")
    guard identity.access(to: scope).contains(access) else { throw .forbidden }
  }

  /// Counts a request of a device.
  ///
  /// - Throws: `.tooManyRequests`.
  func take(_ identity: Identity, device: String?) throws(SyncProblem) {
    if let seconds = rates.take("\(identity.name)\n\(device ?? "")") { throw .tooManyRequests(retryAfter: seconds) }
  }
}
