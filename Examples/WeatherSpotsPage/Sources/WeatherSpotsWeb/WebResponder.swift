import BoundedHTTP
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import Logging
import WeatherSpotsKit

/// The answers to all requests of the page.
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
    if response.status == .methodNotAllowed, let route {
      response.headers[.allow] = (route.known.methods + (route == .events ? [] : [.head])).map(\.rawValue).joined(separator: ", ")
    }
    if request.method == .head { response = response.createHeadResponse() }
    response.headers.append(contentsOf: Self.protection)
    if request.headers[.connection]?.lowercased() == "close" { response.headers[.connection] = "close" }
    let method = route.flatMap { $0.known.methods.contains(request.method) ? request.method.rawValue : nil }
    log.note(route?.known, method: method, status: response.status.code, seconds: (ContinuousClock.now - start) / .seconds(1))
    return response
  }

  private func answer(_ request: Request, _ route: WebRoute?) async throws -> Response {
    try gate.check(request, isPage: route?.isPage ?? false)
    let query = try RequestQuery(of: request)
    if route == .page("/"), request.method == .get, let admission = gate.admission(try query.text("token")) { return admission }
    if route?.needsToken ?? true { try gate.checkToken(request) }
    guard let route else { throw HTTPProblem(.notFound, detail: "There is nothing at this path.") }
    // What answers HEAD has the fields of the answer to GET; a stream has no end that could be left out.
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

  /// Returns an answer that may be kept, or that the client has this form already.
  func kept(_ body: AnswerCache.Body, _ request: Request) -> Response {
    Self.notModified(body.fields, request) ?? Answer.success(body.data, fields: body.fields, packed: body.packed, to: request)
  }

  /// Returns a value as JSON, in the form of the command's `--json`.
  ///
  /// - Parameter tag: The entity tag, quotation marks included; with it, a client that has this form already is told so.
  func json(_ value: some Encodable, status: HTTPResponse.Status = .ok, tag: String? = nil, fields: HTTPFields = [:], _ request: Request)
    throws -> Response
  {
    var fields = fields
    if let tag { fields[.eTag] = tag }
    // A strong tag is of these bytes, and of no packed ones.
    return try Self.notModified(fields, request)
      ?? Answer.success(try ReportJSON.data(value), status: status, fields: fields, mayPack: tag == nil, to: request)
  }

  /// Returns the answer to a client that has this form already; `nil` for others.
  static func notModified(_ fields: HTTPFields, _ request: Request) -> Response? {
    guard let tag = fields[.eTag], Precondition.isKnown(tag, to: request) else { return nil }
    var fields = fields
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

  /// The fields of every answer: the page takes nothing from elsewhere, and nothing elsewhere takes the page.
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
