#if canImport(Glibc)
  import Foundation
  import LarderSync
  import TestSupport
  import Testing

  /// The connections of a transport over plain http on Linux, against a server that answers by a script.
  @Suite(.timeLimit(.minutes(1))) final class SharedConnectionTests: Sendable {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }
    deinit { server.end() }

    private func transport() throws -> HTTPTransport {
      HTTPTransport(try #require(URL(string: "http://127.0.0.1:\(server.port)"))) { nil }
    }
    private func ask(_ transport: HTTPTransport) async throws {
      _ = try await transport.changes(SyncChangesRequest(device: "d", history: nil, since: 0, limit: 1, collections: []), in: "s")
    }

    @Test func requestsShareAConnection() async throws {
      let transport = try transport()
      for _ in 0..<100 { try await ask(transport) }
      #expect(server.requests == 100 && server.connections == 1)
    }

    @Test func thoseBesideEachOtherUseFewConnections() async throws {
      let transport = try transport()
      for _ in 0..<20 {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<4 { group.addTask { try await self.ask(transport) } }
          try await group.waitForAll()
        }
      }
      #expect(server.requests == 80 && server.connections <= 4)
    }

    /// A connection on which an answer has ended otherwise than whole and alone has no second request.
    @Test(arguments: [
      .page("Connection: close\r\n"), .page("connection: Close\r\n", closesConnection: true), .page(status: "HTTP/1.0 200 OK"),
      .page(closesConnection: true),
      ScriptedServer.Answer(bytes: "HTTP/1.1 200 OK\r\n\r\n" + ScriptedServer.Answer.json, closesConnection: true),
      ScriptedServer.Answer(bytes: ScriptedServer.Answer.page().bytes + ScriptedServer.Answer.page().bytes),
      ScriptedServer.Answer(bytes: ScriptedServer.Answer.page().bytes + "x"),
    ])
    func anAnswerThatEndsItsConnectionHasNoneBehindIt(_ answer: ScriptedServer.Answer) async throws {
      let transport = try transport()
      server.set([answer])
      try await ask(transport)
      try await ask(transport)
      try await ask(transport)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test(arguments: ["7\r\n{\"a\":1}\r\n0\r\n\r\n", "7;x=y\r\n{\"a\":1}\r\n0\r\nTrailer: 1\r\n\r\n"])
    func anAnswerInChunksIsAWholeOne(_ chunks: String) async throws {
      let transport = try transport()
      server.set([.init(bytes: "HTTP/1.1 418 Teapot\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)])
      await #expect(throws: SyncProblem.self) { try await ask(transport) }
      try await ask(transport)
      #expect(server.requests == 2 && server.connections == 1)
    }

    @Test func anInterimAnswerIsNone() async throws {
      let transport = try transport()
      server.set([.init(bytes: "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + ScriptedServer.Answer.page().bytes)])
      try await ask(transport)
      try await ask(transport)
      #expect(server.requests == 2 && server.connections == 1)
    }

    @Test func aConnectionThatTheServerHasEndedIsNotUsed() async throws {
      let transport = try transport()
      for _ in 0..<10 {
        try await ask(transport)
        server.endConnections()
        try await until { server.openConnections == 0 }
      }
      #expect(server.requests == 10 && server.connections == 10)
    }

    /// What comes unasked must not be taken for the answer to the next request.
    @Test func aConnectionThatSaysMoreIsNotUsed() async throws {
      let transport = try transport()
      try await ask(transport)
      server.say(ScriptedServer.Answer.page(status: "HTTP/1.1 500 No").bytes)
      try await ask(transport)
      #expect(server.requests == 2 && server.connections == 2)
    }

    /// The server may end a connection in the moment in which the next request is on its way.
    @Test func aRequestThatFindsItsConnectionEndedIsSentOnAnother() async throws {
      let transport = try transport()
      server.set([.page(), .none])
      try await ask(transport)
      try await ask(transport)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func aRequestWithoutAnAnswerIsSentTwiceAtMost() async throws {
      let transport = try transport()
      server.set([.none])
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(transport) }
      #expect(server.requests == 1)
      server.set([.page(), .none, .none])
      try await ask(transport)
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(transport) }
      #expect(server.requests == 4)
      // Part of an answer is an answer.
      server.set([.page(), .init(bytes: "HTTP/1.1 2", closesConnection: true)])
      try await ask(transport)
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(transport) }
      #expect(server.requests == 6)
    }

    @Test func aRequestThatIsCancelledTakesItsConnectionWithIt() async throws {
      let transport = try transport()
      try await ask(transport)
      server.set([.init(bytes: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")])
      let asked = Task { try await ask(transport) }
      try await until { server.requests == 2 }
      asked.cancel()
      await #expect(throws: CancellationError.self) { try await asked.value }
      try await until { server.openConnections == 0 }
      try await ask(transport)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func aTransportThatIsGoneLeavesNoConnection() async throws {
      for _ in 0..<100 { try await ask(transport()) }
      try await until { server.openConnections == 0 }
      #expect(server.requests == 100)
    }

    @Test func anotherTransportHasConnectionsOfItsOwn() async throws {
      let (one, another) = (try transport(), try transport())
      for transport in [one, another, one, another] { try await ask(transport) }
      #expect(server.connections == 2)
    }
  }
#endif
