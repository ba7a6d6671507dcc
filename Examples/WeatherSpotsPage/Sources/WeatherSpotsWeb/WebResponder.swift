import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import Logging
import WeatherSpotsKit

/// Responder to all requests of the page and of its API.
struct WebResponder: HTTPResponder {
  typealias Context = ConnectionContext

  let storage: SpotStore
  let weather: WeatherService
  let photos: PhotoFiles
  let options: WebOptions
  let gate: RequestGate
  let bounds: ServerBounds
  let metrics: RequestMetrics
  let log: AnswerLog
  let streams: StreamCount
  let rows = RowCache()
  let answers = AnswerCache()

  func respond(to request: Request, context: ConnectionContext) async throws -> Response {
    let start = ContinuousClock.now
    let route = WebRoute(path: String((request.head.path ?? "/").prefix { $0 != "?" }))
    var response: Response
    do { response = try await answer(request, route) } catch { response = HTTPProblem(answering: error).response }
    // A 405 must list the methods that the path has (RFC 9110, 15.5.6).
    if response.status == .methodNotAllowed, let route {
      response.headers[.allow] = (route.known.methods + (route == .events ? [] : [.head])).map(\.rawValue).joined(separator: ", ")
    }
    if request.method == .head { response = response.createHeadResponse() }
    // After every branch, so that problems have the protecting fields, too.
    response.headers.append(contentsOf: Self.protection)
    if request.headers[.connection]?.lowercased() == "close" { response.headers[.connection] = "close" }
    // A client can invent methods. Only those of the route become labels of the metrics, which stay in memory.
    let method = route.flatMap { $0.known.methods.contains(request.method) ? request.method.rawValue : nil }
    log.note(route?.known, method: method, status: response.status.code, seconds: (ContinuousClock.now - start) / .seconds(1))
    return response
  }

  private func answer(_ request: Request, _ route: WebRoute?) async throws -> Response {
    try gate.check(request, isPage: route?.isPage ?? false)
    let query = try RequestQuery(of: request)
    // Before the check of the token, because the first request of a browser has it in the address only.
    if route == .page("/"), request.method == .get, let admission = gate.admission(try query.text("token")) { return admission }
    // An unknown path needs the token, too, so that 404 and 401 do not show a stranger which paths exist.
    if route?.needsToken ?? true { try gate.checkToken(request) }
    guard let route else { throw HTTPProblem(.notFound, detail: "There is nothing at this path.") }
    // HEAD is answered like GET without the body (RFC 9110, 9.3.2). A stream has no end, so HEAD would hold one open for nothing.
    let isRead = request.method == .get || request.method == .head && route != .events
    guard isRead || request.method != .head && route.known.methods.contains(request.method) else {
      throw HTTPProblem(.methodNotAllowed, detail: "Expected the method \(route.known.methods.map(\.rawValue).joined(separator: " or ")).")
    }
    switch route {
    case .page(let path):
      guard let file = PageFile.all[path] else { throw HTTPProblem(.notFound, detail: "There is nothing at this path.") }
      return file.response(to: request)
    case .health: return try json(["status": "ok"], request)
    case .metrics: return Answer.success(Data(numbers.utf8), type: "text/plain; version=0.0.4", to: request)
    case .description: return Answer.success(WebDescription.json, to: request)
    case .spots: return try await spots(query, request)
    case .near: return try await near(query, request)
    case .search: return try await search(query, request)
    case .hours: return try await hours(query, request)
    case .events: return try await events(query, request)
    case .forecast(let id): return try await forecast(of: id, query, request)
    case .photos(let id): return try await photos(of: id, query, request)
    case .spot(let id):
      switch request.method {
      case .put: return try await put(id, request)
      case .delete: return try await delete(id, request)
      default: return try await spot(id, request)
      }
    }
  }

  /// Returns the response with a cached body, or 304 if the client has this version.
  func kept(_ body: AnswerCache.Body, _ request: Request) -> Response {
    Self.notModified(body.fields, request) ?? Answer.success(body.data, fields: body.fields, packed: body.packed, to: request)
  }

  /// Returns the response with a value as JSON, in the form that the command writes with `--json`.
  ///
  /// - Parameter tag: The entity tag with its quotation marks. With it, a client that has this version gets 304.
  func json(_ value: some Encodable, status: HTTPResponse.Status = .ok, tag: String? = nil, fields: HTTPFields = [:], _ request: Request)
    throws -> Response
  {
    var fields = fields
    if let tag { fields[.eTag] = tag }
    // A strong tag names exactly these bytes (RFC 9110, 8.8.1). A compressed body would need another tag, so it is not compressed.
    return try Self.notModified(fields, request)
      ?? Answer.success(try ReportJSON.data(value), status: status, fields: fields, mayPack: tag == nil, to: request)
  }

  /// Returns the response 304 if the client has the version of the entity tag in `fields`, and `nil` otherwise.
  static func notModified(_ fields: HTTPFields, _ request: Request) -> Response? {
    guard let tag = fields[.eTag], Precondition.isKnown(tag, to: request) else { return nil }
    var fields = fields
    // A 304 repeats the fields that a cache needs for the stored response, `Vary` among them (RFC 9110, 15.4.5).
    fields[.vary] = "Accept-Encoding"
    return Response(status: .notModified, headers: fields)
  }

  private var numbers: String {
    var text = metrics.text
    text.add("weather_spots_streams", .gauge, "Open event streams.", [("", "\(streams.count)")])
    text.add("weather_spots_connections", .gauge, "Open connections.", [("", "\(bounds.connectionCount)")])
    text.add("weather_spots_bytes_held", .gauge, "Bytes of requests and answers that wait.", [("", "\(bounds.bytesHeld)")])
    text.add("weather_spots_bytes_kept", .gauge, "Bytes of answers that may be given again.", [("", "\(answers.bytes)")])
    text.add("weather_spots_spots", .gauge, "Stored spots.", [("", "\(storage.spots.snapshot.count)")])
    return text.description
  }

  /// Header fields of every response.
  ///
  /// The page loads nothing from other sites, and no other site may embed it.
  private static let protection: HTTPFields = [
    .contentSecurityPolicy: """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
    """,
    .xContentTypeOptions: "nosniff", .referrerPolicy: "no-referrer", .resourcePolicy: "same-origin", .openerPolicy: "same-origin",
    .permissionsPolicy: "geolocation=(self), camera=(), microphone=(), payment=(), usb=()",
  ]
}

extension HTTPField.Name {
  fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .vary
  fileprivate static let resourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy") ?? .vary
  fileprivate static let openerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .vary
  fileprivate static let permissionsPolicy = HTTPField.Name("Permissions-Policy") ?? .vary
}
