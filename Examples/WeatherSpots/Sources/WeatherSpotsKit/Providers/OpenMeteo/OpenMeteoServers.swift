public import Foundation

/// The URLs of Open-Meteo's services.
public struct OpenMeteoServers: Sendable {
  let forecast: URL
  let marine: URL
  let geocoding: URL
  /// The origin of the server, unless it is one of Open-Meteo's.
  let origin: String?
  /// The key of a customer, which is in every request to a server that may have it, and nowhere else.
  let apiKey: String?

  /// Another server that answers `/v1/forecast`, `/v1/marine` and `/v1/search`.
  public init(_ base: URL) {
    self.init(base, apiKey: nil)
  }

  private init(_ base: URL, apiKey: String?) {
    forecast = base
    marine = base
    geocoding = base
    origin = Self.origin(base)
    self.apiKey = apiKey
  }

  /// Open-Meteo's own; the names of those for customers begin with a word of their own.
  private init(prefix: String, apiKey: String? = nil) {
    func url(_ name: String) -> URL { URL(string: "https://\(prefix)\(name).open-meteo.com") ?? URL(filePath: "/") }
    (forecast, marine, geocoding) = (url("api"), url("marine-api"), url("geocoding-api"))
    origin = nil
    self.apiKey = apiKey
  }

  /// Open-Meteo's servers for customers, who have a key, or another server.
  ///
  /// The key is sent only to open-meteo.com and the hosts below it over https, and to this machine; another server is asked without it.
  public init(apiKey: String, at base: URL? = nil) {
    if let base {
      self.init(base, apiKey: apiKey)
    } else {
      self.init(prefix: "customer-", apiKey: apiKey)
    }
  }

  /// Scheme, host, port and path: what tells one server from another.
  static func origin(_ url: URL) -> String {
    var path = url.path
    while path.hasSuffix("/") { path.removeLast() }
    return "\(url.scheme?.lowercased() ?? "http")://\(url.hostAndPort.lowercased())\(path)"
  }

  /// Returns whether a server may have the key: Open-Meteo's own, unread by others on the way, and one on this machine, for tests.
  static func mayHaveKey(_ server: URL) -> Bool {
    guard let host = server.host()?.lowercased().trimmingCharacters(in: ["[", "]"]) else { return false }
    if host == "localhost" || host == "::1" || host.wholeMatch(of: /127(\.[0-9]{1,3}){3}/) != nil { return true }
    return server.scheme?.lowercased() == "https" && host.wholeMatch(of: /([a-z0-9-]+\.)*open-meteo\.com/) != nil
  }

  /// Returns a URL of a service, with the key where there is one and the server may have it.
  func url(_ server: URL, _ path: String, _ items: [(String, String)]) -> URL {
    let key = Self.mayHaveKey(server) ? apiKey : nil
    let all = items + (key.map { [("apikey", $0)] } ?? [])
    return server.appending(path: path).appending(queryItems: all.map { URLQueryItem(name: $0.0, value: $0.1) })
  }

  /// The free servers of Open-Meteo, for non-commercial use.
  public static let openMeteo = OpenMeteoServers(prefix: "")
}
