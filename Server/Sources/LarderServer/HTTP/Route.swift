internal import BoundedHTTP
internal import Foundation
internal import HTTPTypes

/// Routes of the server, with the parameters in their paths.
enum Route: Sendable, Hashable {
  case push(scope: String)
  case changes(scope: String)
  case events(scope: String)
  case scopes, health, readiness, metrics, description

  /// Path with its parameters in braces, for logs, metrics and the description.
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

  /// Method that the route accepts.
  var method: HTTPRequest.Method { if case .push = self { .post } else { .get } }

  /// Route without its parameters.
  var known: KnownPath { KnownPath(template, [method]) }

  /// Parses a path, and returns `nil` for an unknown one.
  ///
  /// The path is still percent-encoded, so that a scope with `/` in its name is one part.
  init?(path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    switch Array(parts) {
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness
    case ["metrics"]: self = .metrics
    case ["openapi.json"]: self = .description
    case ["v1", "scopes"]: self = .scopes
    case let parts where parts.count == 4 && parts[0] == "v1" && parts[1] == "scopes":
      // Decoded after the split, so that an encoded slash stays part of the name.
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

/// Lookup of the paths of the sync server.
struct SyncPaths: KnownPaths {
  func find(_ path: String) -> KnownPath? { Route(path: path)?.known }
}
