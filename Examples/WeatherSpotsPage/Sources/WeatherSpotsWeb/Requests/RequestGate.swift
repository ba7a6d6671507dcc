import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird

/// Check of the host name, the origin and the token of a request, made before its path is answered.
///
/// A page of another site can make a browser send requests to a server on the browser's machine. If it uses a host name that resolves to
/// this machine (DNS rebinding), the name is not in the list. If it embeds a picture or sends a form, the browser's fields name the site.
struct RequestGate: Sendable {
  private static let loopback = ["localhost", "127.0.0.1", "[::1]"]

  private let names: Set<String>
  private let takesAddresses: Bool
  private let token: String?
  private let cookie: String

  init(_ options: WebOptions) {
    names = Set(
      (Self.loopback + [options.host, options.host.contains(":") ? "[\(options.host)]" : options.host] + options.names).map {
        $0.lowercased()
      })
    // DNS rebinding needs a name, so any address is safe. The server cannot list the addresses at which it is reached.
    takesAddresses = !WebOptions.isLoopback(options.host)
    token = options.token
    // Cookies are shared by all ports of a host. The port in the name keeps two servers from replacing each other's token.
    cookie = "weather-spots-\(options.port)"
  }

  /// Checks the host name of a request and the page that a browser names as its origin.
  ///
  /// - Parameter isPage: Whether the path is a file of the page, to which other sites may link.
  /// - Throws: `HTTPProblem` with 421 for a name that is not expected, 403 for a request of another page.
  func check(_ request: Request, isPage: Bool) throws(HTTPProblem) {
    guard isExpected(request.head.authority ?? "") else {
      throw HTTPProblem(.misdirectedRequest, detail: "Expected a request to a name of this server; see --allow-host.")
    }
    // Browsers set these fields, and pages cannot change them. Other programs send neither, and pass.
    if let origin = request.headers[.origin], !isOwn(origin) { throw Self.foreign }
    // A link on another site opens the page as a navigation. A script or a picture has another mode. `frame-ancestors` refuses frames.
    let isFollowed = isPage && request.headers[.secFetchMode] == "navigate"
    if let site = request.headers[.secFetchSite], !["same-origin", "none"].contains(site), !isFollowed { throw Self.foreign }
  }

  /// Checks that a request has the token, if the server has one.
  ///
  /// - Throws: `HTTPProblem` with 401 without the right token.
  func checkToken(_ request: Request) throws(HTTPProblem) {
    guard let token, !has(token, request) else { return }
    throw HTTPProblem(.unauthorized, detail: "Expected the token: open the address that the server has printed.")
  }

  private static let foreign = HTTPProblem(.forbidden, detail: "Expected a request of this server's own page.")

  private func isExpected(_ authority: String) -> Bool {
    let name = Self.name(of: authority).lowercased()
    if names.contains(name) { return true }
    return takesAddresses && (name.hasPrefix("[") || name.wholeMatch(of: /\d{1,3}(\.\d{1,3}){3}/) != nil)
  }

  private func isOwn(_ origin: String) -> Bool {
    // An origin without a scheme is "null": a sandboxed frame or a file, which is no page of this server.
    guard let start = origin.range(of: "://") else { return false }
    return isExpected(String(origin[start.upperBound...]))
  }

  /// Returns a host without its port.
  private static func name(of authority: String) -> String {
    // An IPv6 address has colons of its own.
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") { return String(authority[...end]) }
    return String(authority.prefix { $0 != ":" })
  }

  private func has(_ token: String, _ request: Request) -> Bool {
    let words = (request.headers[.authorization] ?? "").split(separator: " ")
    if words.count == 2, words[0].lowercased() == "bearer", Self.isEqual(String(words[1]), token) { return true }
    // A page sends the cookie by itself. EventSource cannot set the field Authorization.
    return (request.headers[.cookie] ?? "").split(separator: ";").contains { pair in
      let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      return parts.count == 2 && parts[0] == cookie && Self.isEqual(String(parts[1]), token)
    }
  }

  /// Returns the redirection that moves the token from the address into a cookie, or `nil` for a wrong token.
  func admission(_ word: String?) -> Response? {
    guard let token, let word, Self.isEqual(word, token) else { return nil }
    return Response(
      // The redirection takes the token out of the address bar and the history. `Strict` keeps other sites from using the cookie.
      status: .seeOther,
      headers: [
        .location: "/", .setCookie: "\(cookie)=\(token); Path=/; HttpOnly; SameSite=Strict", .cacheControl: "no-store",
      ])
  }

  /// Returns whether two tokens are equal, in a time that does not depend on the length of their common prefix.
  private static func isEqual(_ left: String, _ right: String) -> Bool {
    // The time of comparing digests says nothing about the token: a guess cannot steer its digest.
    SHA256.hash(data: Data(left.utf8)) == SHA256.hash(data: Data(right.utf8))
  }
}

extension HTTPField.Name {
  fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .origin
  fileprivate static let secFetchMode = HTTPField.Name("Sec-Fetch-Mode") ?? .origin
}
