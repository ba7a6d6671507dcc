import Dispatch
import Foundation
import HTTPTypes
import Hummingbird
import LarderWire
import NIOCore
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// The part of a server that one identity can take from others.
@Suite(.timeLimit(.minutes(15))) struct FairnessTests {
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

  /// A body that is read as the server reads it.
  private struct Body: Sendable {
    let identity: String
    var isPacked = true
    /// Is called on the thread that reads it.
    var work: @Sendable () -> Void = {}

    func read(_ large: LargeWork, _ budget: ByteBudget) async throws {
      let bytes = Data(repeating: 0x20, count: isPacked ? 1 << 20 : 1 << 10)
      let part = ByteBuffer(bytes: isPacked ? try #require(Gzip.packed(bytes)) : bytes)
      let parts = AsyncStream<ByteBuffer> { continuation in
        continuation.yield(part)
        continuation.finish()
      }
      let request = Request(
        head: HTTPRequest(
          method: .post, scheme: nil, authority: nil, path: "/", headerFields: isPacked ? [.contentEncoding: "gzip"] : [:]),
        body: RequestBody(asyncSequence: parts))
      let form = RequestContents.Form { _ in work() }
      try await RequestContents.read(request, ServerBounds.Limits(), budget.share(of: identity), large, as: form) { $0 }
    }
  }

  /// Two identities have every thread for large bodies: a third has its small ones read meanwhile, and its large one after one of theirs.
  @Test func twoWithAllTurnsDoNotHoldUpAThird() async throws {
    let (large, budget) = (LargeWork(threads: 2), ByteBudget(1 << 30))
    let (gate, order) = (DispatchSemaphore(value: 0), LogLines())
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in ["ann", "bob"] {
        group.addTask {
          let held = Body(identity: name) {
            begin.yield()
            gate.wait()
          }
          try await held.read(large, budget)
        }
      }
      var both = begun.makeAsyncIterator()
      for _ in 0..<2 { _ = await both.next(isolation: #isolation) }
      try await Body(identity: "cleo", isPacked: false).read(large, budget)
      // Theirs that wait came first, and more than one of each.
      for (waiting, name) in ["ann", "ann", "ann", "bob", "bob", "bob", "cleo"].enumerated() {
        group.addTask { try await Body(identity: name) { order.add(name) }.read(large, budget) }
        while large.waitingCount <= waiting { await Task.yield() }
      }
      gate.signal()
      // The other one still has its thread.
      while !order.text.contains("cleo") { await Task.yield() }
      gate.signal()
      try await group.waitForAll()
    }
    let first = order.text.split(separator: "\n").prefix { $0 != "cleo" }
    #expect(first.count { $0 == "ann" } <= 1 && first.count { $0 == "bob" } <= 1)
    #expect(budget.bytes == 0)
  }
}
