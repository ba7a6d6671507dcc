import Foundation
import Testing

@testable import LarderServer

/// What the proxy of other tests does to what passes through it.
@Suite(.timeLimit(.minutes(15))) struct ChaosProxyTests {
  @Test func aSwallowedRequestGetsThroughAndItsAnswerDoesNot() async throws {
    try await TestServer.run { server in
      let proxy = try ChaosProxy(to: server.port)
      defer { proxy.close() }
      proxy.set(.init(swallowed: "/events"))
      let (swallowed, direct) = (try RawConnection(port: proxy.port), try RawConnection(port: server.port))
      for stream in [swallowed, direct] {
        await stream.send("GET /v1/scopes/user%2F42/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n")
      }
      while try await server.number("larder_streams") < 2 { await Task.yield() }
      #expect(try await server.push(onePush()).status == 200)
      #expect(await direct.read(until: #""head":1}"#).contains("id: 1\n"))
      let other = try RawConnection(port: proxy.port)
      await other.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await other.read(until: "ok\n").hasSuffix("ok\n"))
      // It is open until now.
      #expect(try await server.number("larder_streams") == 2)
      proxy.close()
      #expect(await swallowed.readToEnd() == "")
    }
  }
}
