internal import BoundedHTTP
internal import Foundation
internal import HTTPTypes
internal import Hummingbird
@_spi(Wire) internal import LarderWire
internal import Logging

/// Responder for all routes of the sync server.
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
  /// Limit of pages that are read from the store at once.
  let readings = FairSemaphore(total: 8, perIdentity: 4)
  /// Limit of pages in memory, from their reading to their answer.
  ///
  /// A page may have some megabytes, and large ones wait for a thread in between.
  let pages = FairSemaphore(total: 64, perIdentity: 4)

  func respond(to request: Request, context: ConnectionContext) async throws -> Response {
    let start = ContinuousClock.now
    // The previous request on the connection may have been another identity's.
    context.count(for: bounds.budget.share(of: nil))
    let route = Route(path: Self.path(of: request))
    var response: Response
    do throws(HTTPProblem) { response = try await answer(request, route, context) } catch {
      response = Answer.problem(error, at: route?.known)
    }
    // No route accepts HEAD, and its refusal must have no body (RFC 9110, 9.3.2).
    if request.method == .head { response = response.createHeadResponse() }
    // RFC 9112, 9.6: the last response on a connection should say so.
    if request.headers[.connection] == "close" { response.headers[.connection] = "close" }
    let elapsed = (ContinuousClock.now - start).components
    let seconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    // Other methods are not recorded, because a client could invent any number of them.
    let method = route.flatMap { $0.method == request.method ? request.method.rawValue : nil }
    AnswerLog(metrics: metrics.requests, logger: logger).note(route?.known, method: method, status: response.status.code, seconds: seconds)
    return response
  }

  /// Returns the path as it was sent, without its query.
  private static func path(of request: Request) -> String { String((request.head.path ?? "/").prefix { $0 != "?" }) }

  private func answer(_ request: Request, _ route: Route?, _ context: ConnectionContext) async throws(HTTPProblem) -> Response {
    guard let route else { throw KnownPath.nothing }
    guard request.method == route.method else { throw route.known.wrongMethod }
    // Parsed for every route, so that a malformed query is refused everywhere.
    let query = try RequestQuery(of: request)
    switch route {
    case .health: return Answer.success(Data("ok\n".utf8), type: "text/plain", to: request)
    case .readiness:
      // A load balancer that reads this sends its requests elsewhere before the server ends.
      if drain.hasBegun { throw .unavailable(retryAfter: 5) }
      // A query of any scope shows that the database answers.
      do throws(SyncProblem) { _ = try await store.heads(of: ["-"]) } catch { throw HTTPProblem(error) }
      return Answer.success(Data("ready\n".utf8), type: "text/plain", to: request)
    case .metrics:
      let text = metrics.text(
        streams: hub.count, connections: bounds.connectionCount, bytesHeld: bounds.bytesHeld, lags: sightings.lags)
      return Answer.success(Data(text.utf8), type: "text/plain; version=0.0.4", to: request)
    case .description: return Answer.success(ServerDescription.json, to: request)
    case .scopes:
      let (identity, names) = (try await identity(of: request, context), try query.texts("names"))
      do throws(SyncProblem) { return try await scopes(of: identity, named: names, request) } catch { throw HTTPProblem(error) }
    case .push(let scope):
      let identity = try await identity(of: request, context)
      // Before the body is read, so that a refused client with `Expect: 100-continue` does not send it.
      try check(identity, scope, .write)
      return try await push(request, to: scope, by: identity)
    case .changes(let scope):
      let identity = try await identity(of: request, context)
      try check(identity, scope, .read)
      let question = try query.changesRequest(longestWait: options.waitSeconds)
      let app = try query.appVersion()
      do throws(SyncProblem) { return try await changes(question, app: app, in: scope, by: identity, request) } catch {
        throw HTTPProblem(error)
      }
    case .events(let scope):
      let identity = try await identity(of: request, context)
      try check(identity, scope, .read)
      do throws(SyncProblem) {
        return try await events(of: scope, by: identity, request: request, token: token(of: request), context)
      } catch { throw HTTPProblem(error) }
    }
  }

  private func token(of request: Request) -> String? {
    guard let header = request.headers[.authorization] else { return nil }
    let words = header.split(separator: " ")
    // RFC 9110, 11.1: the name of a scheme is case-insensitive.
    return words.count == 2 && words[0].lowercased() == "bearer" ? String(words[1]) : nil
  }

  /// Returns the identity of a request, and counts the request before its body is read.
  private func identity(of request: Request, _ context: ConnectionContext) async throws(HTTPProblem) -> Identity {
    let identity: Identity
    do throws(SyncProblem) {
      if authorizer is NoAuthorizer {
        identity = try await authorizer.identity(of: "")
      } else {
        guard let token = token(of: request) else { throw .unauthorized }
        identity = try await authorizer.identity(of: token)
      }
      if let seconds = rates.take(identity) { throw .tooManyRequests(retryAfter: seconds) }
    } catch { throw HTTPProblem(error) }
    context.count(for: share(of: identity))
    return identity
  }

  /// Returns the byte share of an identity.
  ///
  /// On a server without tokens, the whole budget is everybody's.
  func share(of identity: Identity) -> ByteShare { bounds.budget.share(of: authorizer is NoAuthorizer ? nil : identity.name) }

  private func check(_ identity: Identity, _ scope: String, _ access: ScopeAccess) throws(HTTPProblem) {
    do throws(SyncProblem) {
      // Checked before the rights, since a pattern such as `*` also matches names that are out of bounds.
      try WireField.scope.check(scope)
      guard identity.access(to: scope).contains(access) else { throw .forbidden }
    } catch { throw HTTPProblem(error) }
  }
}
