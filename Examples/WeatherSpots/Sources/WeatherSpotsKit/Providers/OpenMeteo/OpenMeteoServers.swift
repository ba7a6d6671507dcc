public import Foundation

/// Base URLs of Open-Meteo's services, or of another server with the same API.
public struct OpenMeteoServers: Sendable {
  let forecast: URL
  let marine: URL
  let geocoding: URL
  /// Origin of another server, or `nil` for Open-Meteo's own servers.
  let origin: String?
  /// API key of a paying customer, which is sent only to servers that ``mayHaveKey(_:)`` accepts.
  private(set) var apiKey: String?

  /// Open-Meteo's free servers, for non-commercial use.
  public static let openMeteo = OpenMeteoServers(prefix: "")
}

extension OpenMeteoServers {
  /// Creates the URLs of another server that answers `/v1/forecast`, `/v1/marine` and `/v1/search`.
  public init(_ base: URL) { self.init(forecast: base, marine: base, geocoding: base, origin: Self.origin(base)) }

  /// Creates the URLs of Open-Meteo's own servers.
  ///
  /// The host names of the servers for customers begin with a prefix.
  private init(prefix: String) {
    func url(_ name: String) -> URL { URL(string: "https://\(prefix)\(name).open-meteo.com") ?? URL(filePath: "/") }
    self.init(forecast: url("api"), marine: url("marine-api"), geocoding: url("geocoding-api"), origin: nil)
  }

  /// Creates the URLs of Open-Meteo's servers for customers with an API key, or of another server.
  ///
  /// The key is sent only to this machine and, over https, to open-meteo.com and its subdomains. Requests to other servers leave it out.
  public init(apiKey: String, at base: URL? = nil) {
    self = base.map(OpenMeteoServers.init) ?? OpenMeteoServers(prefix: "customer-")
    self.apiKey = apiKey
  }

  /// Returns scheme, host, port and path of a URL, which identify a server.
  static func origin(_ url: URL) -> String {
    // A trailing slash must not make a second server with a cache of its own.
    var path = url.path
    while path.hasSuffix("/") { path.removeLast() }
    return "\(url.scheme?.lowercased() ?? "http")://\(url.hostAndPort.lowercased())\(path)"
  }

  /// Returns whether the API key may be sent to a server.
  ///
  /// True for Open-Meteo's own servers over https, and for this machine, which tests need.
  static func mayHaveKey(_ server: URL) -> Bool {
    guard let host = server.host()?.lowercased().trimmingCharacters(in: ["[", "]"]) else { return false }
    if host == "localhost" || host == "::1" || host.wholeMatch(of: /127(\.[0-9]{1,3}){3}/) != nil { return true }
    // A whole match: "open-meteo.com.example.org" must not get the key.
    return server.scheme?.lowercased() == "https" && host.wholeMatch(of: /([a-z0-9-]+\.)*open-meteo\.com/) != nil
  }

  /// Returns the URL of a request, with the API key if there is one and the server may have it.
  func url(_ server: URL, _ path: String, _ items: [(String, String)]) -> URL {
    let key = Self.mayHaveKey(server) ? apiKey : nil
    let all = items + (key.map { [("apikey", $0)] } ?? [])
    return server.appending(path: path).appending(queryItems: all.map { URLQueryItem(name: $0.0, value: $0.1) })
  }
}
