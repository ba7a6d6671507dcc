import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// The bounds of connections, asked for byte by byte.
@Suite(.timeLimit(.minutes(15))) struct ConnectionTests {
  private static let health = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
  private static func push(_ token: String, _ headers: String) -> String {
    "POST /v1/scopes/user%2F42/push HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\(headers)\r\n\r\n"
  }

  @Test func aHeadThatDoesNotComeEndsTheConnection() async throws {
    var options = ServerOptions()
    (options.headSeconds, options.idleSeconds) = (1, 3_600)
    try await TestServer.run(options: options) { server in
      let (silent, slow) = (try RawConnection(port: server.port), try RawConnection(port: server.port))
      await slow.send("GET /healthz HTTP/1.1\r\nHost")
      #expect(await slow.readToEnd() == "")
      #expect(await silent.readToEnd() == "")
    }
  }

  @Test func aHeadThatDoesNotComeBehindAnotherRequestEndsTheConnection() async throws {
    var options = ServerOptions()
    // The time holds for the request that is answered, too.
    (options.headSeconds, options.idleSeconds) = (3_600, 5)
    try await TestServer.run(options: options) { server in
      let slow = try RawConnection(port: server.port)
      await slow.send(Self.health)
      #expect(await slow.read(until: "ok\n").hasPrefix("HTTP/1.1 200 OK"))
      await slow.send("GET /healthz HTTP/1.1\r\nHost")
      #expect(await slow.readToEnd() == "")
    }
  }

  @Test func oneConnectionTooManyIsClosedAndAFreePlaceIsTaken() async throws {
    var options = ServerOptions()
    options.connections = 2
    try await TestServer.run(options: options) { server in
      var open = [try RawConnection(port: server.port), try RawConnection(port: server.port)]
      for connection in open {
        await connection.send(Self.health)
        #expect(await connection.read(until: "ok\n").hasSuffix("ok\n"))
      }
      let third = try RawConnection(port: server.port)
      await third.send(Self.health)
      #expect(await third.readToEnd() == "")
      open = []
      // The server notices the end of the others in its own time.
      var answer = ""
      for _ in 0..<1_000 where !answer.hasSuffix("ok\n") {
        let next = try RawConnection(port: server.port)
        await next.send(Self.health.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n"))
        answer = await next.readToEnd() ?? ""
      }
      #expect(answer.hasSuffix("ok\n"))
    }
  }

  @Test func aRefusedBodyIsNotReadToItsEnd() async throws {
    var options = ServerOptions()
    options.bodyBytes = 1_000
    try await TestServer.run(options: options) { server in
      let some = String(repeating: " ", count: 100)
      let chunk = "7d0\r\n" + String(repeating: " ", count: 2_000) + "\r\n"
      for (request, status) in [
        (Self.push("wrong", "Content-Length: 1000000000") + some, 401),
        (Self.push(TestTokens.ann, "Content-Length: 1000000000") + some, 413),
        (Self.push(TestTokens.ann, "Transfer-Encoding: chunked") + chunk, 413),
        (Self.push(TestTokens.ann, "Content-Encoding: br\r\nContent-Length: 900") + some, 415),
        ("POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n" + some, 404),
      ] {
        let connection = try RawConnection(port: server.port)
        await connection.send(request)
        let answer = try #require(await connection.readToEnd(), "the connection stays open behind \(status)")
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
        #expect(answer.lowercased().contains("connection: close"))
        #expect(answer.contains(#""status":\#(status)"#))
      }
    }
  }

  /// The extension of a chunk counts to neither head nor body.
  @Test func aChunkExtensionIsNotReadForEver() async throws {
    var options = ServerOptions()
    // So that it is not the time which ends it.
    options.bodySeconds = 3_600
    try await TestServer.run(options: options) { server in
      let connection = try RawConnection(port: server.port)
      await connection.send(Self.push(TestTokens.ann, "Transfer-Encoding: chunked") + "1;")
      let piece = String(repeating: "x", count: 16 << 10)
      for _ in 0..<64 { await connection.send(piece) }
      #expect(await connection.readToEnd() != nil, "the connection stays open")
      let (allowed, push) = (try RawConnection(port: server.port), String(decoding: onePush().json, as: UTF8.self))
      let chunks = push.utf8.map { "1;name=\"value\"\r\n\(UnicodeScalar($0))\r\n" }.joined() + "0\r\n\r\n"
      await allowed.send(Self.push(TestTokens.ann, "Connection: close\r\nTransfer-Encoding: chunked") + chunks)
      #expect(await allowed.readToEnd()?.hasPrefix("HTTP/1.1 200 ") == true)
    }
  }

  @Test func aBodyThatDoesNotComeIsNotWaitedFor() async throws {
    var options = ServerOptions()
    options.bodySeconds = 1
    try await TestServer.run(options: options) { server in
      let connection = try RawConnection(port: server.port)
      await connection.send(Self.push(TestTokens.ann, "Content-Length: 900") + "{")
      #expect(await connection.readToEnd()?.hasPrefix("HTTP/1.1 408 ") == true)
      #expect(try await server.number("larder_bytes_held") == 0)
    }
  }

  /// Fills a scope with a page of some megabytes, which no buffer of a socket takes as a whole.
  private static func fill(_ server: TestServer) async throws {
    let value = Data("\"\(String(repeating: "x", count: 3 << 20))\"".utf8)
    for seq in 1...4 {
      var push = onePush(seq: seq, id: "r\(seq)")
      push.groups[0][0].value = value
      _ = try await server.store.push(push, to: "user/42", by: "ann")
    }
  }

  private static let page = "GET /v1/scopes/user%2F42/changes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n"

  @Test func whoDoesNotReadAnAnswerIsCutOff() async throws {
    var options = ServerOptions()
    options.answerSeconds = 1
    try await TestServer.run(options: options) { server in
      try await Self.fill(server)
      let reader = try RawConnection(port: server.port, window: 4_096)
      await reader.send(Self.page)
      let start = await reader.read(until: "\r\n\r\n")
      #expect(start.hasPrefix("HTTP/1.1 200 OK"))
      while try await server.number("larder_bytes_held") > 0 { await Task.yield() }
      let rest = try #require(await reader.readToEnd())
      #expect(start.utf8.count + rest.utf8.count < 3 * (3 << 20))
    }
  }

  @Test func whatIsHeldForSlowReadersIsBounded() async throws {
    var options = ServerOptions()
    (options.answerSeconds, options.bytesHeld) = (3_600, 1_000_000)
    try await TestServer.run(options: options) { server in
      try await Self.fill(server)
      var reader: RawConnection? = try RawConnection(port: server.port, window: 4_096)
      await reader?.send(Self.page)
      while try await server.number("larder_bytes_held") < 1_000_000 { await Task.yield() }
      let refused = try await server.send("GET", "/v1/scopes/user%2F42/changes?since=3")
      #expect(refused.status == 503)
      #expect(refused.headers["retry-after"] == "5")
      #expect(try await server.push(onePush(device: "d2", id: "b")).status == 503)
      reader = nil
      while try await server.number("larder_bytes_held") > 0 { await Task.yield() }
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=3").status == 200)
    }
  }

  @Test func requestsInOneSendAreAnsweredInTheirOrder() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      await connection.send(
        "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + Self.health + "GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let answers = try #require(await connection.readToEnd())
      let statuses = answers.split(separator: "\r\n").filter { $0.contains("HTTP/1.1") }.map {
        $0.suffix(from: $0.range(of: "HTTP/1.1 ")?.upperBound ?? $0.startIndex).prefix(3)
      }
      #expect(statuses == ["405", "200", "404"])
    }
  }

  @Test func whatHasBegunBehindACompleteRequestIsNoReasonToEndTheConnection() async throws {
    try await TestServer.run { server in
      let connection = try RawConnection(port: server.port)
      let body = String(decoding: onePush().json, as: UTF8.self)
      await connection.send(Self.health + Self.push(TestTokens.ann, "Content-Length: \(body.utf8.count)"))
      let first = await connection.read(until: "ok\n")
      #expect(first.hasPrefix("HTTP/1.1 200 ") && !first.lowercased().contains("connection: close"))
      await connection.send(body)
      #expect(await connection.read(until: #""token":"t1"}"#).hasPrefix("HTTP/1.1 200 "))
      // And what is no request ends it behind the answers to those before.
      await connection.send(Self.health + "nonsense\r\n\r\n")
      let last = try #require(await connection.readToEnd())
      #expect(last.hasPrefix("HTTP/1.1 200 ") && last.contains("HTTP/1.1 400 ") && last.lowercased().contains("connection: close"))
    }
  }

  @Test func headsThatAreTooLongOrNotHTTPAreRefused() async throws {
    try await TestServer.run { server in
      let long = String(repeating: "a", count: 200_000)
      for request in [
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: \(long)\r\n\r\n", "GET /\(long)\(long) HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: a\r\n", count: 1_000) + "\r\n", "nonsense\r\n\r\n",
        "POST /v1/scopes/user%2F42/push HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ] {
        let connection = try RawConnection(port: server.port)
        await connection.send(request)
        let answer = try #require(await connection.readToEnd(), "still open after \(request.prefix(30))")
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(request.prefix(30)) is answered with \(answer.prefix(30))")
      }
    }
  }

  @Test func pathsAreTakenAsTheyAreSent() async throws {
    try await TestServer.run { server in
      for path in [
        "/v1/scopes/../scopes/user%2F42/changes", "//v1/scopes", "/v1/scopes/", "/v1/scopes//changes", "/v1/scopes/user/42/changes",
        "/v1/scopes/%ff/changes", "/V1/scopes", "/v1/scopes/user%2F42/changes/", "/healthz/", "/v1%2Fscopes",
      ] {
        let connection = try RawConnection(port: server.port)
        await connection.send("GET \(path) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\nConnection: close\r\n\r\n")
        #expect(await connection.readToEnd()?.hasPrefix("HTTP/1.1 404 ") == true, "\(path)")
      }
      for scope in ["user%2F42%00", "user%2F4%32%2F..", "user%2F43", "*", "USER%2F42"] {
        #expect(try await server.send("GET", "/v1/scopes/\(scope)/changes").status / 100 == 4, "\(scope)")
      }
    }
  }

  @Test func deepJSONIsRefused() async throws {
    try await TestServer.run { server in
      let deep = String(repeating: "[", count: 1_000_000) + String(repeating: "]", count: 1_000_000)
      for body in [
        deep, #"{"device":"d","seq":1,"token":"t","clock":1,"groups":[{"records":[{"in":"c","id":"a","base":0,"value":\#(deep)}]}]}"#,
      ] {
        let answer = try await server.send("POST", "/v1/scopes/user%2F42/push", body: Data(body.utf8))
        #expect(answer.status == 400)
      }
    }
  }

  @Test func aServerThatIsAboutToEndIsNotReady() async throws {
    var options = ServerOptions()
    options.drainSeconds = 3_600
    try await TestServer.run(options: options) { server in
      #expect(try await server.send("GET", "/readyz", token: nil).status == 200)
      await server.beginShutdown()
      while try await server.send("GET", "/readyz", token: nil).status == 200 { await Task.yield() }
      let refused = try await server.send("GET", "/readyz", token: nil)
      #expect(refused.status == 503)
      #expect(try await server.push(onePush()).status == 200)
    }
  }
}
