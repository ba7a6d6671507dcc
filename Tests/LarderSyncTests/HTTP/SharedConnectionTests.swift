#if canImport(Glibc)
  import Foundation
  import FoundationNetworking
  import TestSupport
  import Testing

  @testable import LarderSync

  /// The connections of a transport over plain http on Linux, against a server that answers by a script.
  @Suite(.timeLimit(.minutes(15))) final class SharedConnectionTests: Sendable {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer() }
    deinit { server.end() }

    /// Returns a connection that keeps its sockets for longer than any machine is busy.
    private func connection(_ idleTime: Duration = .seconds(600)) -> HTTPConnection { HTTPConnection(idleTime: idleTime) }

    @discardableResult
    private func ask(_ connection: HTTPConnection, body: Data? = nil) async throws -> Int {
      var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)/v1/scopes/s/changes")))
      request.httpBody = body
      return try await connection.send(request, limit: 10_000, within: .seconds(600)).status
    }

    @Test func requestsShareAConnection() async throws {
      let connection = connection()
      for _ in 0..<100 { try await ask(connection) }
      #expect(server.requests == 100 && server.connections == 1)
    }

    @Test func thoseBesideEachOtherUseFewConnections() async throws {
      let connection = connection()
      for _ in 0..<20 {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<4 { group.addTask { _ = try await self.ask(connection) } }
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
      .page("Content-Length: \(ScriptedServer.Answer.json.utf8.count)\r\nTransfer-Encoding: identity\r\n"),
      ScriptedServer.Answer(bytes: "HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n"),
      ScriptedServer.Answer(bytes: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      ScriptedServer.Answer(bytes: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ])
    func anAnswerThatEndsItsConnectionHasNoneBehindIt(_ answer: ScriptedServer.Answer) async throws {
      let connection = connection()
      server.set([answer])
      try await ask(connection)
      try await ask(connection)
      try await ask(connection)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test(arguments: ["7\r\n{\"a\":1}\r\n0\r\n\r\n", "7;x=y\r\n{\"a\":1}\r\n0\r\nTrailer: 1\r\n\r\n"])
    func anAnswerInChunksIsAWholeOne(_ chunks: String) async throws {
      let connection = connection()
      server.set([.init(bytes: "HTTP/1.1 418 Teapot\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)])
      #expect(try await ask(connection) == 418)
      #expect(try await ask(connection) == 200)
      #expect(server.requests == 2 && server.connections == 1)
    }

    @Test func anInterimAnswerIsNone() async throws {
      let connection = connection()
      server.set([.init(bytes: "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + ScriptedServer.Answer.page().bytes)])
      try await ask(connection)
      try await ask(connection)
      #expect(server.requests == 2 && server.connections == 1)
    }

    @Test func aConnectionThatTheServerHasEndedIsNotUsed() async throws {
      let connection = connection()
      for _ in 0..<10 {
        try await ask(connection)
        server.endConnections()
        try await until { server.openConnections == 0 }
      }
      #expect(server.requests == 10 && server.connections == 10)
    }

    /// What comes unasked must not be taken for the answer to the next request.
    @Test func aConnectionThatSaysMoreIsNotUsed() async throws {
      let connection = connection()
      try await ask(connection)
      server.say(ScriptedServer.Answer.page(status: "HTTP/1.1 500 No").bytes)
      #expect(try await ask(connection) == 200)
      #expect(server.requests == 2 && server.connections == 2)
    }

    /// The server may end a connection in the moment in which the next request is on its way.
    @Test func aRequestThatFindsItsConnectionEndedIsSentOnAnother() async throws {
      let connection = connection()
      server.set([.page(), .none])
      try await ask(connection)
      try await ask(connection)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func aRequestWithoutAnAnswerIsSentTwiceAtMost() async throws {
      let connection = connection()
      server.set([.none])
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(connection) }
      #expect(server.requests == 1)
      server.set([.page(), .none, .none])
      try await ask(connection)
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(connection) }
      #expect(server.requests == 4)
      // Part of an answer is an answer.
      server.set([.page(), .init(bytes: "HTTP/1.1 2", closesConnection: true)])
      try await ask(connection)
      await #expect(throws: SyncProblem.unreachable("the connection broke off")) { try await ask(connection) }
      #expect(server.requests == 6)
    }

    @Test func aRequestThatIsCancelledTakesItsConnectionWithIt() async throws {
      let connection = connection()
      try await ask(connection)
      server.set([.init(bytes: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")])
      let asked = Task { try await ask(connection) }
      try await until { server.requests == 2 }
      asked.cancel()
      await #expect(throws: CancellationError.self) { try await asked.value }
      try await until { server.openConnections == 0 }
      try await ask(connection)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func aBodyGoesWithEachRequest() async throws {
      let connection = connection()
      for count in [0, 1, 10_000, 300_000, 5] { try await ask(connection, body: Data(count: count)) }
      #expect(server.requests == 5 && server.connections == 1)
    }

    @Test func aRequestThatIsRefusedBeforeItsEndTakesItsConnectionWithIt() async throws {
      let connection = connection()
      try await ask(connection)
      server.set([.init(bytes: "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", closesConnection: true, isEarly: true)])
      #expect(try await ask(connection, body: Data(count: 50_000_000)) == 413)
      #expect(try await ask(connection) == 200)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func anAnswerThatIsTooLargeTakesItsConnectionWithIt() async throws {
      let connection = connection()
      try await ask(connection)
      server.set([.init(bytes: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + String(repeating: "x", count: 1_000_000))])
      await #expect(throws: SyncProblem.answerTooLarge) { try await ask(connection) }
      try await ask(connection)
      #expect(server.requests == 3 && server.connections == 2)
    }

    @Test func noMoreThanFourConnectionsWait() async throws {
      let connection = connection()
      let page = ScriptedServer.Answer.page().bytes
      // Each waits for the last byte of its answer until all are under way.
      server.set(Array(repeating: .init(bytes: String(page.dropLast())), count: 9))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<9 { group.addTask { _ = try await self.ask(connection) } }
        try await until { server.answers == 9 }
        server.say(String(page.suffix(1)))
        try await group.waitForAll()
      }
      #expect(server.connections == 9)
      try await until { server.openConnections == 4 }
    }

    @Test func aConnectionWaitsForItsTimeOnly() async throws {
      let connection = connection(.milliseconds(1))
      for _ in 0..<3 {
        try await ask(connection)
        try await until { server.openConnections == 0 }
      }
      #expect(server.requests == 3 && server.connections == 3)
    }

    @Test func aStreamThatIsRefusedLeavesNoConnection() async throws {
      let connection = connection()
      let request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)/v1/scopes/s/events")))
      for _ in 0..<10 {
        server.set([.page(status: "HTTP/1.1 503 No")])
        let pieces = connection.stream(request, firstLimit: .seconds(600), silenceLimit: .seconds(600))
        await #expect(throws: SyncProblem.self) { for try await _ in pieces {} }
      }
      try await until { server.openConnections == 0 }
      #expect(server.requests == 10 && server.connections == 10)
    }

    @Test func anOwnerThatIsGoneLeavesNoConnection() async throws {
      for _ in 0..<100 { try await ask(connection()) }
      try await until { server.openConnections == 0 }
      #expect(server.requests == 100)
    }

    @Test func anotherOwnerHasConnectionsOfItsOwn() async throws {
      let (one, another) = (connection(), connection())
      for connection in [one, another, one, another] { try await ask(connection) }
      #expect(server.connections == 2)
    }
  }
#endif
