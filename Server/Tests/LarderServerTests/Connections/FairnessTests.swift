import Foundation
import LarderSync
import Testing

@testable import LarderServer

/// The part of a server that one identity can take from others.
@Suite(.timeLimit(.minutes(2))) struct FairnessTests {
  @Test func whoDoesNotReadIsRefusedAlone() async throws {
    var options = ServerOptions()
    (options.answerSeconds, options.bytesHeld) = (3_600, 24 << 20)
    try await TestServer.run(options: options) { server in
      let value = Data("\"\(String(repeating: "x", count: 3 << 20))\"".utf8)
      for seq in 1...4 {
        var push = onePush(seq: seq, id: "r\(seq)")
        push.groups[0][0].value = value
        _ = try await server.store.push(push, to: "user/42", by: "ann")
      }
      var reader: RawConnection? = try RawConnection(port: server.port, window: 4_096)
      await reader?.send(
        "GET /v1/scopes/user%2F42/changes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n")
      // One page is more than her share, and less than all that may be held.
      while try await server.number("larder_bytes_held") < 6 << 20 { await Task.yield() }
      let refused = try await server.send("GET", "/v1/scopes/user%2F42/changes?since=3")
      #expect(refused.status == 503)
      #expect(refused.headers["retry-after"] == "5")
      #expect(try await server.push(onePush(device: "d2", id: "b")).status == 503)
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=3", token: TestTokens.bob).status == 200)
      #expect(try await server.push(onePush(device: "d3", id: "b"), token: TestTokens.bob).status == 200)
      reader = nil
      while try await server.number("larder_bytes_held") > 0 { await Task.yield() }
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=3").status == 200)
    }
  }
}
