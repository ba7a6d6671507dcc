import Foundation
import Testing

@testable import LarderServer

/// What is no request, or lacks what every request has, is answered in the form that the description promises.
@Suite(.timeLimit(.minutes(15))) struct RequestHeadTests {
  /// Expects that a request is answered with a problem, and that the connection ends behind it.
  private static func expect(_ status: Int, _ request: Data, allow: String? = nil, _ server: TestServer) async throws {
    let name = String(decoding: request.prefix(40), as: UTF8.self)
    let connection = try RawConnection(port: server.port)
    await connection.send(request)
    let answer = try #require(await connection.readToEnd(), "still open after \(name)")
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(name) is answered with \(answer.prefix(40))")
    let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1)
    let head = parts.first?.lowercased() ?? ""
    #expect(head.contains("content-type: application/problem+json"), "\(name)")
    #expect(head.contains("connection: close"), "\(name)")
    #expect(head.contains("\r\nallow: \(allow?.lowercased() ?? "")") == (allow != nil), "\(name)")
    let body = Data((parts.count > 1 ? parts[1] : "").utf8)
    #expect(ProblemForm.isWhole(body, status: status), "\(name) has the body \(String(decoding: body, as: UTF8.self))")
  }

  private static func expect(_ status: Int, _ request: String, allow: String? = nil, _ server: TestServer) async throws {
    try await expect(status, Data(request.utf8), allow: allow, server)
  }

  @Test func whatIsNoRequestIsAProblemInJSON() async throws {
    try await TestServer.run { server in
      let long = String(repeating: "a", count: 200_000)
      for request in [
        "GET /\(long) HTTP/1.1\r\nHost: a\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\nX: \(long)\(long)\(long)\(long)\(long)\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: a\r\n", count: 1_000) + "\r\n", "nonsense\r\n\r\n",
        "GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "POST /v1/scopes/user%2F42/push HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ] { try await Self.expect(400, request, server) }
      try await Self.expect(400, Data("GET /".utf8) + [0xff] + Data(" HTTP/1.1\r\nHost: a\r\n\r\n".utf8), server)
      // It is counted and logged, without what was sent.
      #expect(try await server.number(#"larder_requests_total{route="other",method="other",status="400"}"#) == 8)
      #expect(server.logs.text.contains(#""status": 400"#))
      #expect(!server.logs.text.contains("nonsense"))
    }
  }

  @Test func unknownMethodsAreAnsweredAsOtherWrongOnesAre() async throws {
    try await TestServer.run { server in
      for method in ["FOO", "get", "QUERY-IT"] {
        try await Self.expect(405, "\(method) /healthz?a=b HTTP/1.1\r\nHost: a\r\n\r\n", allow: "GET", server)
        try await Self.expect(405, "\(method) /v1/scopes/user%2F42/push HTTP/1.1\r\nHost: a\r\n\r\n", allow: "POST", server)
        try await Self.expect(404, "\(method) /nothing HTTP/1.1\r\nHost: a\r\n\r\n", server)
      }
      for line in ["F{}O /healthz HTTP/1.1", "FOO healthz", " FOO /healthz HTTP/1.1", "FOO /healthz HTTP/1.1 more"] {
        try await Self.expect(400, "\(line)\r\nHost: a\r\n\r\n", server)
      }
      // One that the parser knows does not end the connection.
      let connection = try RawConnection(port: server.port)
      for _ in 0..<2 {
        await connection.send("PROPFIND /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(await connection.read(until: #""type""#).hasPrefix("HTTP/1.1 405 "))
      }
    }
  }

  @Test func whatIsNoRequestWaitsForTheAnswersBeforeIt() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      let request = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
      await connection.send(request + request + "FOO /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + request)
      let answers = try #require(await connection.readToEnd())
      let statuses = answers.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
      // Behind others in one send, its line is not looked for.
      #expect(statuses == ["200", "200", "400"])
      #expect(answers.contains("application/problem+json"))
    }
  }

  @Test func aRequestNamesOneHost() async throws {
    try await TestServer.run { server in
      for fields in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nX: y\r\nhost: b\r\n"] {
        try await Self.expect(400, "GET /healthz HTTP/1.1\r\n\(fields)\r\n", server)
      }
      try await Self.expect(400, "GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", server)
      try await Self.expect(400, "POST /v1/scopes/user%2F42/push HTTP/1.1\r\nContent-Length: 900\r\n\r\n{", server)
      let old = try RawConnection(port: server.port)
      await old.send("GET /healthz HTTP/1.0\r\n\r\n")
      #expect(await old.readToEnd()?.hasSuffix("ok\n") == true)
    }
  }

  @Test func connectionsEndWhereTheClientSaysSo() async throws {
    var options = ServerOptions()
    options.idleSeconds = 3_600
    try await TestServer.run(options: options) { server in
      for (version, field) in [
        ("1.1", "Connection: close"), ("1.1", "Connection: Close"), ("1.1", "connection: x, CLOSE"), ("1.1", "Connection: close, x"),
        ("1.1", "Connection: x\r\nConnection: close"), ("1.0", "X: y"), ("1.0", "Connection: close"),
      ] {
        let connection = try RawConnection(port: server.port)
        await connection.send("GET /healthz HTTP/\(version)\r\nHost: a\r\n\(field)\r\n\r\n")
        let answer = try #require(await connection.readToEnd(), "still open after \(field) in \(version)")
        #expect(answer.lowercased().contains("\r\nconnection: close\r\n"), "\(field)")
        #expect(answer.hasSuffix("ok\n"), "\(field)")
      }
      for (version, field) in [("1.1", "X: y"), ("1.1", "Connection: closed"), ("1.0", "Connection: Keep-Alive")] {
        let connection = try RawConnection(port: server.port)
        for _ in 0..<2 {
          await connection.send("GET /healthz HTTP/\(version)\r\nHost: a\r\n\(field)\r\n\r\n")
          #expect(await connection.read(until: "ok\n").hasSuffix("ok\n"), "\(field)")
        }
      }
    }
  }
}

/// The members that every problem has.
private enum ProblemForm {
  static func isWhole(_ body: Data, status: Int) -> Bool {
    guard let json = (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] else { return false }
    return json["type"] is String && json["title"] is String && json["status"] as? Int == status
  }
}
