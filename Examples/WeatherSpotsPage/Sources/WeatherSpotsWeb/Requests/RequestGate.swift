import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird

/// The check of who asks, before anything is looked for: by which name, from which page, with which token.
///
/// A page of another site can send a browser to a server on its own machine: by a name that it makes lead there (DNS rebinding), which is
/// not expected here, or for a picture or a form, which the browser tells.
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
    // A name can be made to lead anywhere, an address cannot; at which of its addresses this machine is asked, it does not know.
    takesAddresses = !WebOptions.isLoopback(options.host)
    token = options.token
    cookie = "weather-spots-\(options.port)"
  }

  /// Checks by which name a request comes, and from which page.
  ///
  /// - Parameter isPage: Whether a file of the page is asked for, to which another site may lead.
  /// - Throws: `HTTPProblem` with 421 for another name, 403 for another page.
  func check(_ request: Request, isPage: Bool) throws(HTTPProblem) {
    guard isExpected(request.head.authority ?? "") else {
      throw HTTPProblem(.misdirectedRequest, detail: "Expected a request to a name of this server; see --allow-host.")
    }
    // What a browser says of the page that has made the request; other programs say nothing.
    if let origin = request.headers[.origin], !isOwn(origin) { throw Self.foreign }
    let isFollowed = isPage && request.headers[.secFetchMode] == "navigate"
    if let site = request.headers[.secFetchSite], !["same-origin", "none"].contains(site), !isFollowed { throw Self.foreign }
  }

  /// Checks that a request has the token, where one is needed.
  ///
  /// - Throws: `HTTPProblem` with 401.
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
    guard let start = origin.range(of: "://") else { return false }
    return isExpected(String(origin[start.upperBound...]))
  }

  /// Returns a host without its port.
  private static func name(of authority: String) -> String {
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") { return String(authority[...end]) }
    return String(authority.prefix { $0 != ":" })
  }

  private func has(_ token: String, _ request: Request) -> Bool {
    let words = (request.headers[.authorization] ?? "").split(separator: " ")
    if words.count == 2, words[0].lowercased() == "bearer", Self.isEqual(String(words[1]), token) { return true }
    return (request.headers[.cookie] ?? "").split(separator: ";").contains { pair in
      let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      return parts.count == 2 && parts[0] == cookie && Self.isEqual(String(parts[1]), token)
    }
  }

  /// Returns the answer to an address with the token in it: the token becomes a cookie, and leaves the address; `nil` for another word.
  func admission(_ word: String?) -> Response? {
    guard let token, let word, Self.isEqual(word, token) else { return nil }
    return Response(
      status: .seeOther,
      headers: [
        .location: "/", .setCookie: "\(cookie)=\(token); Path=/; HttpOnly; SameSite=Strict", .cacheControl: "no-store",
      ])
  }

  /// Returns whether two words are equal, in a time that does not tell how far they are.
  private static func isEqual(_ left: String, _ right: String) -> Bool {
    SHA256.hash(data: Data(left.utf8)) == SHA256.hash(data: Data(right.utf8))
  }
}

extension HTTPField.Name {
  fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .origin
  fileprivate static let secFetchMode = HTTPField.Name("Sec-Fetch-Mode") ?? .origin
}
