import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// `Expect: 100-continue`: who asks before it sends a body is told, and sends none that is not taken.
@Suite(.timeLimit(.minutes(15))) struct ExpectationTests {
  private static func head(_ token: String, length: Int, version: String = "1.1", path: String = "/v1/scopes/user%2F42/push") -> String {
    "POST \(path) HTTP/\(version)\r\nHost: a\r\nAuthorization: Bearer \(token)\r\nContent-Length: \(length)\r\n"
      + "Expect: 100-Continue\r\n\r\n"
  }

  @Test func aBodyThatIsTakenIsAskedFor() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      for seq in 1...2 {
        let body = String(decoding: onePush(seq: seq, id: "r\(seq)").json, as: UTF8.self)
        await connection.send(Self.head(TestTokens.ann, length: body.utf8.count))
        let interim = await connection.read(until: "\r\n\r\n")
        #expect(interim == "HTTP/1.1 100 Continue\r\n\r\n")
        await connection.send(body)
        let answer = await connection.read(until: #""token""#)
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
      }
    }
  }

  @Test func aBodyThatCameAnywayIsTaken() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      let body = String(decoding: onePush().json, as: UTF8.self)
      await connection.send(Self.head(TestTokens.ann, length: body.utf8.count) + body)
      let answer = await connection.read(until: #""token""#)
      #expect(answer.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 "))
    }
  }

  @Test func aBodyThatIsRefusedIsNotAskedFor() async throws {
    var options = ServerOptions()
    options.bodyBytes = 1_000
    try await TestServer.run(options: options) { server in
      for (request, status) in [
        (Self.head("wrong", length: 10), 401), (Self.head(TestTokens.ann, length: 1_001), 413),
        (Self.head(TestTokens.ann, length: 10, path: "/v1/scopes/user%2F43/push"), 403),
        (Self.head(TestTokens.ann, length: 10, path: "/healthz"), 405),
      ] {
        let connection = try RawConnection(port: server.port)
        await connection.send(request)
        let answer = try #require(await connection.readToEnd(), "still open behind \(status)")
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      }
    }
  }

  @Test func anEventStreamHasNoInterimAnswerInIt() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      await connection.send(
        "GET /v1/scopes/user%2F42/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\nExpect: 100-continue\r\n\r\n")
      let start = await connection.read(until: #""head":0}"#)
      #expect(try await server.push(onePush()).status == 200)
      let all = await start + connection.read(until: #""head":1}"#)
      #expect(!all.contains("100 Continue"))
    }
  }

  @Test func anOldClientIsSentNoInterimAnswer() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      let body = String(decoding: onePush().json, as: UTF8.self)
      await connection.send(Self.head(TestTokens.ann, length: body.utf8.count, version: "1.0") + body)
      #expect(await connection.readToEnd()?.hasPrefix("HTTP/1.1 200 ") == true)
    }
  }
}
