internal import BoundedHTTP
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
@_spi(Wire) internal import LarderSync
internal import Logging

/// The answers to all requests.
struct SyncResponder: HTTPResponder {
  typealias Context = ConnectionContext

  let store: SQLSyncStore
  let hub: HeadHub
  let authorizer: any Authorizer
  let validator: RecordValidator?
  let options: ServerOptions
  let rates: RequestRates
  let seats: StreamSeats
  let sightings: Sightings
  let bounds: ServerBounds
  let drain: Drain
  let metrics: ServerMetrics
  let logger: Logger
  /// The turns of pages that are read from the store.
  let readings = Turns(8, each: 4)
  /// The turns of pages from their reading to their answer: each may be some megabytes, and large ones wait for threads in between.
  let pages = Turns(64, each: 4)

  func respond(to request: Request, context: ConnectionContext) async throws -> Response {
    let start = ContinuousClock.now
    // The request before it on the connection was perhaps somebody else's.
    context.count(for: bounds.budget.share(of: nil))
    let route = Route(path: Self.path(of: request))
    var response: Response
    do throws(SyncProblem) { response = try await answer(request, route, context) } catch {
      response = Answer.problem(error, at: route?.known)
    }
    // HEAD is not taken anywhere, and what answers it has no body.
    if request.method == .head { response = response.createHeadResponse() }
    if request.headers[.connection] == "close" { response.headers[.connection] = "close" }
    let elapsed = (ContinuousClock.now - start).components
    let seconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    let method = route.flatMap { $0.method == request.method ? request.method.rawValue : nil }
    AnswerLog(metrics: metrics.requests, logger: logger).note(route?.known, method: method, status: response.status.code, seconds: seconds)
    return response
  }

  /// The path as it was sent, without what stands behind `?`.
  private static func path(of request: Request) -> String { String((request.head.path ?? "/").prefix { $0 != "?" }) }

  private func answer(_ request: Request, _ route: Route?, _ context: ConnectionContext) async throws(SyncProblem) -> Response {
    guard let route else { throw KnownPath.nothing }
    guard request.method == route.method else { throw route.known.wrongMethod }
    let query = try RequestQuery(of: request)
    switch route {
    case .health: return Answer.success(Data("ok\n".utf8), type: "text/plain", to: request)
    case .readiness:
      if drain.hasBegun { throw .unavailable(retryAfter: 5) }
      _ = try await store.heads(of: ["-"])
      return Answer.success(Data("ready\n".utf8), type: "text/plain", to: request)
    case .metrics:
      let text = metrics.text(
        streams: hub.count, connections: bounds.connectionCount, bytesHeld: bounds.bytesHeld, lags: sightings.lags)
      return Answer.success(Data(text.utf8), type: "text/plain; version=0.0.4", to: request)
    case .description: return Answer.success(ServerDescription.json, to: request)
    case .scopes:
      return try await scopes(of: try await identity(of: request, context), named: try query.texts("names"), request)
    case .push(let scope):
      let identity = try await identity(of: request, context)
      try check(identity, scope, .write)
      return try await push(request, to: scope, by: identity)
    case .changes(let scope):
      let identity = try await identity(of: request, context)
      try check(identity, scope, .read)
      let question = try query.changesRequest(longestWait: options.waitSeconds)
      if let seconds = rates.take(identity, device: question.device) { throw .tooManyRequests(retryAfter: seconds) }
      return try await changes(question, app: try query.appVersion(), in: scope, by: identity, request)
    case .events(let scope):
      let identity = try await identity(of: request, context)
      try check(identity, scope, .read)
      return try await events(of: scope, by: identity, request: request, token: token(of: request), context)
    }
  }

  private func token(of request: Request) -> String? {
    guard let header = request.headers[.authorization] else { return nil }
    let words = header.split(separator: " ")
    return words.count == 2 && words[0].lowercased() == "bearer" ? String(words[1]) : nil
  }

  /// Returns who asks, whose request is counted, before anything is read for it.
  private func identity(of request: Request, _ context: ConnectionContext) async throws(SyncProblem) -> Identity {
    let identity: Identity
    if authorizer is NoAuthorizer {
      identity = try await authorizer.identity(of: "")
    } else {
      guard let token = token(of: request) else { throw .unauthorized }
      identity = try await authorizer.identity(of: token)
    }
    if let seconds = rates.take(identity) { throw .tooManyRequests(retryAfter: seconds) }
    context.count(for: share(of: identity))
    return identity
  }

  /// Returns what an identity may hold; where everybody is the same one, all that there is.
  func share(of identity: Identity) -> ByteShare { bounds.budget.share(of: authorizer is NoAuthorizer ? nil : identity.name) }

  private func check(_ identity: Identity, _ scope: String, _ access: ScopeAccess) throws(SyncProblem) {
    try WireField.scope.check(scope)
    guard identity.access(to: scope).contains(access) else { throw .forbidden }
  }
}
