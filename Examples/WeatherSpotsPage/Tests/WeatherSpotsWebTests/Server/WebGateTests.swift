import Foundation
import Larder
import Testing

@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebGateTests {
  /// Returns the answer to a request that is written as it is.
  private func answer(_ web: TestWeb, _ head: String) async throws -> String {
    try await web.answer(to: head + "Connection: close\r\n\r\n")
  }

  /// Returns the status of the answer.
  private func status(_ web: TestWeb, _ head: String) async throws -> Int {
    let answer = try await answer(web, head)
    return try #require(Int(answer.split(separator: " ").dropFirst().first ?? ""), "\(answer)")
  }

  /// Expects a status, or any of the 400s where none is given.
  private func expect(_ expected: Int?, _ head: String, _ web: TestWeb) async throws {
    let found = try await status(web, head)
    #expect(expected.map { $0 == found } ?? (400..<500).contains(found), "\(head)")
  }

  @Test func anotherNameIsRefused() async throws {
    try await TestWeb.run { web in
      for host in ["127.0.0.1:\(web.port)", "localhost", "LOCALHOST:1", "[::1]:80"] {
        try await expect(200, "GET /api/spots HTTP/1.1\r\nHost: \(host)\r\n", web)
      }
      for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "192.168.1.4", "", "user@127.0.0.1"] {
        try await expect(nil, "GET /api/spots HTTP/1.1\r\nHost: \(host)\r\n", web)
      }
      try await expect(nil, "GET http://evil.example/api/spots HTTP/1.1\r\nHost: evil.example\r\n", web)
      try await expect(400, "GET /api/spots HTTP/1.1\r\n", web)
      try await expect(400, "GET /api/spots HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", web)
    }
  }

  @Test func aPageOfAnotherSiteIsRefused() async throws {
    try await TestWeb.run { web in
      let head = "DELETE /api/spots/x HTTP/1.1\r\nHost: localhost\r\n"
      try await expect(403, head + "Origin: https://evil.example\r\n", web)
      try await expect(403, head + "Origin: null\r\n", web)
      try await expect(403, head + "Sec-Fetch-Site: cross-site\r\n", web)
      try await expect(404, head + "Origin: http://localhost:\(web.port)\r\n", web)
      // A picture or a stream of another site, also of one on another port here; a link to the page may be followed.
      let get = "GET /api/spots HTTP/1.1\r\nHost: localhost\r\n"
      for site in ["cross-site", "same-site"] {
        try await expect(403, get + "Sec-Fetch-Site: \(site)\r\nSec-Fetch-Mode: no-cors\r\n", web)
        try await expect(403, get + "Sec-Fetch-Site: \(site)\r\nSec-Fetch-Mode: navigate\r\n", web)
      }
      try await expect(200, "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", web)
      try await expect(200, get + "Sec-Fetch-Site: same-origin\r\n", web)
      let answer = try await web.get("/api/spots")
      #expect(answer.headers["access-control-allow-origin"] == nil)
      #expect(answer.headers["content-security-policy"]?.contains("default-src 'none'") == true)
      #expect(answer.headers["cross-origin-resource-policy"] == "same-origin")
    }
  }

  @Test func othersNeedTheToken() async throws {
    var options = WebOptions()
    (options.token, options.names) = ("secret-token", ["Pier.local"])
    try await TestWeb.run(options) { web in
      for path in ["/health", "/openapi.json"] { #expect(try await web.get(path).status == 200) }
      for path in ["/", "/style.css", "/api/spots", "/metrics", "/api/events", "/nothing"] {
        let answer = try await web.get(path)
        #expect(answer.status == 401, "\(path)")
        #expect(answer.headers["www-authenticate"] == "Bearer")
      }
      #expect(try await web.get("/api/spots", headers: ["Authorization": "Bearer wrong"]).status == 401)
      #expect(try await web.get("/api/spots", headers: ["Authorization": "Bearer secret-token"]).status == 200)
      #expect(try await web.get("/?token=wrong").status == 401)
      let admitted = try await answer(web, "GET /?token=secret-token HTTP/1.1\r\nHost: localhost\r\n")
      try await expect(421, "GET /?token=secret-token HTTP/1.1\r\nHost: evil.example\r\n", web)
      #expect(admitted.hasPrefix("HTTP/1.1 303 ") && admitted.contains("\r\nLocation: /\r\n"))
      let cookie = try #require(admitted.firstMatch(of: /Set-Cookie: (.*)\r\n/)).1
      #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
      let pair = String(cookie.prefix { $0 != ";" })
      #expect(try await web.get("/", headers: ["Cookie": "a=b; \(pair)"]).status == 200)
      let head = "GET /health HTTP/1.1\r\nHost: pier.local:80\r\n"
      try await expect(200, head, web)
      #expect(!web.logs.text.contains("secret-token"))
    }
  }

  @Test func addressesOfOthersAreNotLoopback() {
    for host in ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"] { #expect(WebOptions.isLoopback(host)) }
    for host in ["0.0.0.0", "192.168.1.4", "pier.local", "127.0.0.1.evil.example", "::"] { #expect(!WebOptions.isLoopback(host)) }
    #expect(WebOptions.newToken().count == 43)
    #expect(WebOptions.newToken() != WebOptions.newToken())
  }
}
