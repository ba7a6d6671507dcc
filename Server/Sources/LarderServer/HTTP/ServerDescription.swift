internal import BoundedHTTP
internal import Foundation
internal import HTTPTypes

/// Description of the wire protocol in OpenAPI 3.1.
enum ServerDescription {
  /// Operation of a route, with the statuses that it has beside those of every operation.
  private struct Operation {
    var route: Route
    var summary: String
    var needsToken = true
    var statuses: [Int] = []
    var parameters: [String] = []
    var request: String?
    var answer: (type: String, schema: String)

    var allStatuses: [Int] { ([200, 400, 405] + (needsToken ? [401, 403, 429, 503] : [503]) + statuses).sorted() }
  }

  private static let operations = [
    Operation(
      route: .push(scope: ""), summary: "Takes edits: compare-and-set by record, groups whole or not at all.",
      statuses: [404, 408, 409, 413, 415, 422, 426, 507],
      request: "Push", answer: ("application/json", "PushReply")),
    Operation(
      route: .changes(scope: ""), summary: "Returns a page of changes: whole commits, in their order.", statuses: [404, 409, 410],
      parameters: ["since", "limit", "device", "history", "collections", "wait", "from", "pending", "app"],
      answer: ("application/json", "Changes")),
    Operation(
      route: .events(scope: ""), summary: "Tells the newest commit at once, and each newer one, as server-sent events.",
      statuses: [404],
      answer: ("text/event-stream", "Text")),
    Operation(
      route: .scopes,
      summary: "Lists the scopes that the token may use, by the bytes of their names, at most 1000 for a pattern; or those of names.",
      parameters: ["names"],
      answer: ("application/json", "Scopes")),
    Operation(route: .health, summary: "Says that the process runs.", needsToken: false, answer: ("text/plain", "Text")),
    Operation(route: .readiness, summary: "Says that the database answers.", needsToken: false, answer: ("text/plain", "Text")),
    Operation(
      route: .metrics, summary: "Tells numbers in the text format of Prometheus.", needsToken: false, answer: ("text/plain", "Text")),
    Operation(route: .description, summary: "Returns this description.", needsToken: false, answer: ("application/json", "Any")),
  ]

  /// Described statuses, by the template of the route.
  static var statuses: [String: [Int]] {
    operations.reduce(into: [:]) { $0[$1.route.template] = $1.allStatuses }
  }

  static let json = Data(
    """
    {"openapi":"3.1.0","info":{"title":"larder-server","version":"1","description":"A parameter that comes twice is 400, and so is whatever is no request of HTTP/1.1; a method that is none is 400 or 405."},"paths":{\(operations.map(path).joined(separator: ","))},
    "components":{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"schemas":{\(schemas)}}}

    """.utf8)

  private static func path(_ operation: Operation) -> String {
    var parameters = operation.parameters.map { name in #"{"name":"\#(name)","in":"query",\#(form(of: name))}"# }
    if operation.route.template.contains("{scope}") {
      parameters.insert(
        ##"{"name":"scope","in":"path","required":true,"description":"percent-encoded","schema":{"$ref":"#/components/schemas/Name"}}"##,
        at: 0)
    }
    let request = operation.request.map {
      ##""requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/\##($0)"}}}},"##
    }
    let responses = operation.allStatuses.map { status -> String in
      let (type, schema) = status == 200 ? operation.answer : ("application/problem+json", "Problem")
      return
        ##""\##(status)":{"description":"\##(meaning(status))","content":{"\##(type)":{"schema":{"$ref":"#/components/schemas/\##(schema)"}}}}"##
    }
    return #""\#(operation.route.template)":{"\#(operation.route.method.rawValue.lowercased())":{"summary":"\#(operation.summary)","#
      + #""security":[\#(operation.needsToken ? #"{"bearer":[]}"# : "")],"parameters":[\#(parameters.joined(separator: ","))],"#
      + #"\#(request ?? "")"responses":{\#(responses.joined(separator: ","))}}}"#
  }

  private static func form(of parameter: String) -> String {
    switch parameter {
    case "limit":
      ##""description":"the changes of a page, \##(RequestQuery.usualLimit) where it is missing; 0 is taken as 1, and more than "##
        + ##"\##(RequestQuery.mostChanges) is taken as \##(RequestQuery.mostChanges)","schema":{"$ref":"#/components/schemas/Number"}"##
    case "wait":
      ##""description":"the seconds to wait for changes where there are none; more than the most of the server, which is "##
        + ##"\##(ServerOptions().waitSeconds) by default, is taken as the most","schema":{"$ref":"#/components/schemas/Number"}"##
    case "names":
      ##""description":"scopes to list, with no access where the token has none, and head 0 where there is no commit","##
        + ##""style":"form","explode":false,"schema":{"type":"array","maxItems":\##(RequestQuery.mostNames),"items":\##(optionalName)}"##
    case "pending":
      ##""description":"the records with edits that wait on the device, for the operator","schema":{"$ref":"#/components/schemas/Number"}"##
    case "app":
      ##""description":"the version of the app, for the operator: cut after 64 bytes in UTF-8, and without control characters","##
        + ##""schema":{"type":"string"}"##
    case "since", "from": ##""schema":{"$ref":"#/components/schemas/Number"}"##
    case "collections":
      // Each name is percent-encoded with its commas. The commas between two names are not.
      ##""style":"form","explode":false,"schema":{"type":"array","maxItems":\##(RequestQuery.mostNames),"items":\##(optionalName)}"##
    default: #""schema":\#(optionalName)"#
    }
  }

  /// Schema of a name that counts as missing if it is empty.
  private static let optionalName =
    #"{"type":"string","maxLength":1024,"pattern":"^[^\u0000]*$","description":"at most 1024 bytes in UTF-8"}"#

  private static func meaning(_ status: Int) -> String {
    switch status {
    case 200: "done"
    case 400: "the request cannot be read"
    case 401: "the token is missing or not valid"
    case 403: "the scope, or the device, is not the token's"
    case 404: "there is nothing at this path"
    case 405: "another method is expected"
    case 408: "the body came too slowly"
    case 409: "another history, or not the push that follows"
    case 410: "deletions are forgotten: read everything"
    case 413: "too many bytes or records"
    case 415: "a content encoding that is not known"
    case 422: "too many scopes of one identity"
    case 426: "the scope needs a newer version of the app"
    case 429: "too many requests or streams: Retry-After says when"
    case 507: "the identity stores as much as it may: deletions and values that are not longer are still taken"
    default: "not now: Retry-After says when"
    }
  }
}
