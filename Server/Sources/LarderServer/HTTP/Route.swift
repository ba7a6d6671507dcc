internal import BoundedHTTP
internal import Foundation
internal import HTTPTypes

/// The things that can be asked for.
enum Route: Sendable, Hashable {
  case push(scope: String)
  case changes(scope: String)
  case events(scope: String)
  case scopes, health, readiness, metrics, description

  /// The path with its parameters in braces, for logs, counts and the description.
  var template: String {
    switch self {
    case .push: "/v1/scopes/{scope}/push"
    case .changes: "/v1/scopes/{scope}/changes"
    case .events: "/v1/scopes/{scope}/events"
    case .scopes: "/v1/scopes"
    case .health: "/healthz"
    case .readiness: "/readyz"
    case .metrics: "/metrics"
    case .description: "/openapi.json"
    }
  }

  /// The method that it is asked for with.
  var method: HTTPRequest.Method { if case .push = self { .post } else { .get } }

  /// The route without its parameters.
  var known: KnownPath { KnownPath(template, [method]) }

  /// Finds the route of a path, which is still percent-encoded, so that a scope with `/` in its name is one part; `nil` for none.
  init?(path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    switch Array(parts) {
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness
    case ["metrics"]: self = .metrics
    case ["openapi.json"]: self = .description
    case ["v1", "scopes"]: self = .scopes
    case let parts where parts.count == 4 && parts[0] == "v1" && parts[1] == "scopes":
      guard let scope = parts[2].removingPercentEncoding, !scope.isEmpty else { return nil }
      switch parts[3] {
      case "push": self = .push(scope: scope)
      case "changes": self = .changes(scope: scope)
      case "events": self = .events(scope: scope)
      default: return nil
      }
    default: return nil
    }
  }
}

/// The paths of the server of sync.
struct SyncPaths: KnownPaths {
  func find(_ path: String) -> KnownPath? { Route(path: path)?.known }
}
