import BoundedHTTP
import Foundation
import HTTPTypes

/// Route of a request: one of the resources of the server, with its id or its path.
enum WebRoute: Hashable, Sendable {
  case page(String)
  case spots, near, search, hours, events, health, metrics, description
  case spot(id: String)
  case forecast(id: String)
  case photos(id: String)

  /// Finds the route of a percent-encoded path, or returns `nil` if there is none.
  ///
  /// The path must still be encoded, so that an id with `/` in it is one part.
  init?(path: String) {
    // Empty parts stay: "//health" and "/health/" are no paths of this server.
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    switch Array(parts) {
    case ["health"]: self = .health
    case ["metrics"]: self = .metrics
    case ["openapi.json"]: self = .description
    case ["api", "spots"]: self = .spots
    case ["api", "spots", "near"]: self = .near
    case ["api", "search"]: self = .search
    case ["api", "hours"]: self = .hours
    case ["api", "events"]: self = .events
    case let parts where parts.count == 3 && parts[0] == "api":
      // Decoding fails for bytes that are not UTF-8.
      guard let id = parts[2].removingPercentEncoding, !id.isEmpty else { return nil }
      switch parts[1] {
      case "spots": self = .spot(id: id)
      case "forecast": self = .forecast(id: id)
      case "photos": self = .photos(id: id)
      default: return nil
      }
    default:
      guard PageFile.all[path] != nil else { return nil }
      self = .page(path)
    }
  }

  /// Path template and methods of the route, which are the same for all ids.
  var known: KnownPath {
    switch self {
    case .page(let path): KnownPath(path, [.get])
    case .spots: KnownPath("/api/spots", [.get])
    case .near: KnownPath("/api/spots/near", [.get])
    case .search: KnownPath("/api/search", [.get])
    case .hours: KnownPath("/api/hours", [.get])
    case .events: KnownPath("/api/events", [.get])
    case .health: KnownPath("/health", [.get])
    case .metrics: KnownPath("/metrics", [.get])
    case .description: KnownPath("/openapi.json", [.get])
    case .spot: KnownPath("/api/spots/{id}", [.get, .put, .delete])
    case .forecast: KnownPath("/api/forecast/{id}", [.get])
    case .photos: KnownPath("/api/photos/{id}", [.get])
    }
  }

  /// Whether the route is a file of the page.
  var isPage: Bool { if case .page = self { true } else { false } }

  /// Whether a request needs the token, if the server has one.
  var needsToken: Bool { self != .health && self != .description }
}

/// Paths and methods of the server, in the form that BoundedHTTP takes.
struct WebPaths: KnownPaths {
  func find(_ path: String) -> KnownPath? { WebRoute(path: path)?.known }
}
