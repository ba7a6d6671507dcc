import Foundation
import Synchronization
import Testing

@testable import LarderServer
@testable import LarderSync

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(15))) struct ServerTests {
  @Test func aPushIsAnsweredAndReadAgain() async throws {
    try await TestServer.run { server in
      let answer = try await server.push(onePush())
      #expect(answer.status == 200)
      let reply = try SyncPushReply(json: answer.body)
      #expect(reply.receipt == SyncReceipt(seq: 1, token: "t1", outcomes: [.accepted(1)]))
      let page = try await server.send("GET", "/v1/scopes/user%2F42/changes?since=0&device=d1&limit=10&history=\(reply.history)")
      let changes = try SyncChanges(json: page.body)
      #expect(changes.changes.map(\.id) == ["a"])
      #expect(changes.last == reply.receipt)
      #expect(changes.total == 1)
      let scopes = try await server.send("GET", "/v1/scopes")
      #expect(String(decoding: scopes.body, as: UTF8.self).contains(#""head":1"#))
    }
  }

  @Test func mistakesAreProblemsInJSON() async throws {
    var options = ServerOptions()
    options.bodyBytes = 2_000
    options.recordsPerPush = 2
    try await TestServer.run(options: options) { server in
      func expect(_ status: Int, _ answer: TestAnswer, _ line: Int = #line) {
        #expect(answer.status == status, "line \(line)")
        #expect(answer.headers["content-type"] == "application/problem+json", "line \(line)")
        #expect(String(decoding: answer.body, as: UTF8.self).contains(#""status":\#(status)"#), "line \(line)")
      }
      expect(404, try await server.send("GET", "/nothing"))
      expect(404, try await server.send("GET", "/v1/scopes/user/42/changes"))
      let wrongMethod = try await server.send("DELETE", "/v1/scopes/user%2F42/push")
      expect(405, wrongMethod)
      #expect(wrongMethod.headers["allow"] == "POST")
      let noToken = try await server.send("GET", "/v1/scopes", token: nil)
      expect(401, noToken)
      #expect(noToken.headers["www-authenticate"] == "Bearer")
      expect(401, try await server.send("GET", "/v1/scopes", token: "wrong"))
      expect(403, try await server.push(onePush(), to: "user%2F43"))
      expect(403, try await server.push(onePush(), to: "team%2F1"))
      expect(400, try await server.send("POST", "/v1/scopes/user%2F42/push", body: Data("{".utf8)))
      expect(400, try await server.send("GET", "/v1/scopes/user%2F42/changes?since=-1"))
      expect(400, try await server.push(onePush(id: "")))
      expect(413, try await server.push(onePush(value: "\"\(String(repeating: "x", count: 3_000))\"")))
      var many = onePush()
      many.groups = (0..<3).map { [PushedRecord(collection: "c", id: "\($0)", base: 0, value: Data("1".utf8))] }
      expect(413, try await server.push(many))
      expect(409, try await server.push(onePush(seq: 2)))
      let history = try await server.push(onePush(history: "other"))
      expect(409, history)
      if case .history = history.problem {} else { Issue.record("expected another history") }
      try await server.store.setMinimum(2, of: "user/42")
      expect(426, try await server.push(onePush()))
      #expect(try await server.push(onePush(version: 2)).status == 200)
      #expect(try await server.push(onePush(seq: 2, base: 1, version: 2, value: nil)).status == 200)
      #expect(try await server.store.purge(olderThanDays: 0) == 1)
      expect(410, try await server.send("GET", "/v1/scopes/user%2F42/changes?since=1"))
      #expect(try await server.send("HEAD", "/healthz").body.isEmpty)
      expect(415, try await server.send("POST", "/v1/scopes/user%2F42/push", body: Data("{}".utf8), headers: ["Content-Encoding": "br"]))
    }
  }

  @Test func aDeviceThatAsksTooOftenIsToldWhenToComeAgain() async throws {
    var options = ServerOptions()
    (options.burst, options.requestsPerSecond) = (2, 0.01)
    try await TestServer.run(options: options) { server in
      for _ in 0..<2 { #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d1").status == 200) }
      let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d1")
      #expect(answer.status == 429)
      #expect(answer.headers["retry-after"].flatMap { Int($0) } ?? 0 > 1)
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d2").status == 200)
    }
  }

  @Test func anIdentityThatMakesUpDevicesRunsDryAsAWhole() async throws {
    var options = ServerOptions()
    (options.burst, options.requestsPerSecond, options.devicesAtOnce) = (2, 0.01, 3)
    try await TestServer.run(options: options) { server in
      var statuses: [Int] = []
      for number in 0..<8 { statuses.append(try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d\(number)").status) }
      #expect(statuses == [200, 200, 200, 200, 200, 200, 429, 429])
      // So it is for pushes, before their bodies are read, for the list of scopes, and for streams.
      #expect(try await server.push(onePush(device: "new")).status == 429)
      #expect(try await server.send("GET", "/v1/scopes").status == 429)
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/events").status == 429)
      #expect(try await server.send("GET", "/v1/scopes", token: TestTokens.bob).status == 200)
    }
  }

  @Test func collectionsWithCommasAreAskedForByDevices() async throws {
    try await TestServer.run { server in
      var push = onePush()
      push.groups = ["a,b", "a", "b", "c+d e/ü%2C"].enumerated().map { index, name in
        [PushedRecord(collection: name, id: "\(index)", base: 0, version: 1, stamp: 900, value: Data("1".utf8))]
      }
      #expect(try await server.push(push).status == 200)
      let url = try #require(URL(string: server.base))
      let transport = HTTPTransport(url) { TestTokens.ann }
      for (names, ids) in [(["a,b"], ["0"]), (["a", "b"], ["1", "2"]), (["c+d e/ü%2C", "a,b"], ["0", "3"])] {
        let page = try await transport.changes(SyncChangesRequest(device: "d1", since: 0, collections: names), in: "user/42")
        #expect(page.changes.map(\.id) == ids, "\(names)")
      }
    }
  }

  @Test func namesOfCollectionsAreCheckedAsThoseOfPushesAre() async throws {
    try await TestServer.run { server in
      for name in ["%00", "a%00b", "a,%00", String(repeating: "x", count: 1_025)] {
        let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d1&collections=\(name)")
        #expect(answer.status == 400, "\(name.prefix(10))")
      }
      #expect(
        try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d1&collections=\(String(repeating: "x", count: 1_024))").status
          == 200)
    }
  }

  @Test func aRefusalIsInTheLogWithTheDevice() async throws {
    let validator = RecordValidator { _, _, record in record.id == "bad" ? SyncRejectionReason(code: "bad-id", detail: "secret") : nil }
    try await TestServer.run(validator: validator) { server in
      #expect(try await server.push(onePush(device: "pho\u{1B}[31m\nne", id: "bad", version: 7, value: #""private""#)).status == 200)
      try await server.store.setMinimum(9, of: "user/42")
      #expect(try await server.push(onePush(device: "tablet", version: 8)).status == 426)
      let lines = server.logs.text.split(separator: "\n").filter { $0.contains("a push is refused") }
      let expected = [
        ["debug", "ann", "pho[31mne", "user/42", "[7]", "bad-id"], ["debug", "ann", "tablet", "user/42", "[8]", "newer version"],
      ]
      #expect(lines.count == 2)
      for (line, words) in zip(lines, expected) { for word in words { #expect(line.contains(word), "\(line)") } }
      #expect(!server.logs.text.contains("private") && !server.logs.text.contains("secret"))
    }
  }

  @Test func severalScopesAreListedAtOnce() async throws {
    try await TestServer.run { server in
      #expect(try await server.push(onePush()).status == 200)
      func scopes(_ names: String, token: String) async throws -> SyncScopes {
        try SyncScopes(json: try await server.send("GET", "/v1/scopes?names=\(names)", token: token).body)
      }
      let names = "user%2F42,team%2F7,private%2F1"
      let found = try await scopes(names, token: TestTokens.ann)
      #expect(found.history == (try await server.store.history()))
      let nothing = SyncScope(name: "private/1", mayRead: false, mayWrite: false, head: 0)
      let team = SyncScope(name: "team/7", mayRead: true, mayWrite: false, head: 0)
      #expect(found.scopes == [nothing, team, SyncScope(name: "user/42", mayRead: true, mayWrite: true, head: 1)])
      // Without any right, not even the head is told.
      let bob = try await scopes("team%2F7,user%2F42", token: TestTokens.bob)
      #expect(bob.scopes.map(\.head) == [0, 1])
      #expect(try await server.send("GET", "/v1/scopes?names=%00").status == 400)
      let list = String(repeating: "a,", count: 1_001)
      #expect(try await server.send("GET", "/v1/scopes?names=\(list)").status == 400)
    }
  }

  @Test func aTransportSaysWhenThereIsAnotherToken() async throws {
    try await TestServer.run { server in
      let token = Mutex<String?>("token-that-has-run-out")
      let url = try #require(URL(string: server.base))
      let transport = HTTPTransport(url) { token.withLock { $0 } }
      for _ in 0..<2 {
        await #expect(throws: SyncProblem.unauthorized) { _ = try await transport.push(onePush(), to: "user/42") }
        #expect(await transport.lacksCredentials())
        #expect(await !transport.hasOtherCredentials())
      }
      token.withLock { $0 = TestTokens.ann }
      #expect(await transport.hasOtherCredentials())
      let names = (0..<300).map { "team/\($0)\(String(repeating: "x", count: 40))" }
      let found = try #require(try await transport.scopes(named: names + ["user/42"]))
      #expect(Set(found.scopes.map(\.name)) == Set(names + ["user/42"]))
      #expect(found.scopes.count == 301)
    }
  }

  @Test func devicesMoveWithAnIdentityThatHasAnotherName() async throws {
    let directory = try TemporaryDirectory()
    try await TestServer.run(in: directory) { server in
      #expect(try await server.push(onePush()).status == 200)
      let renamed = TestTokens.line("token-of-anna", "anna", "user/42", [.read, .write])
      try TokenTable(TestTokens.lines + [renamed]).text.write(toFile: directory.file("tokens"), atomically: true, encoding: .utf8)
      let next = onePush(seq: 2, id: "b")
      #expect(try await server.push(next, token: "token-of-anna").status == 403)
      let before = try await server.store.deviceOwners()
      #expect(before == [DeviceOwner(identity: "ann", devices: 1, records: 1, bytes: 13)])
      #expect(try await server.store.moveDevices(from: "nobody", to: "anna") == 0)
      #expect(try await server.store.moveDevices(from: "ann", to: "anna") == 1)
      #expect(try await server.push(next, token: "token-of-anna").status == 200)
      #expect(try await server.push(onePush(seq: 3, id: "c")).status == 403)
    }
  }

  @Test func eventsTellTheNewestCommits() async throws {
    try await TestServer.run(beat: .milliseconds(50)) { server in
      let (lines, task) = try EventReader.open(server.base + "/v1/scopes/user%2F42/events", token: TestTokens.ann)
      var iterator = EventFields(iterator: lines.makeAsyncIterator())
      #expect(await iterator.next() == "id: 0")
      #expect(await iterator.next() == "event: head")
      #expect(await iterator.next() == #"data: {"head":0}"#)
      #expect(try await server.push(onePush()).status == 200)
      #expect(await iterator.next() == "id: 1")
      _ = await iterator.next()
      _ = await iterator.next()
      #expect(try await server.push(onePush(device: "d9", id: "b")).status == 200)
      #expect(await iterator.next() == "id: 2")
      task.cancel()
      let (again, other) = try EventReader.open(server.base + "/v1/scopes/user%2F42/events", token: TestTokens.ann, lastEventID: 2)
      var second = again.makeAsyncIterator()
      #expect(await second.next() == ":")
      other.cancel()
    }
  }

  @Test func aLongPollWakesWithACommit() async throws {
    try await TestServer.run { server in
      async let page = server.send("GET", "/v1/scopes/user%2F42/changes?since=0&device=d2&wait=25")
      while !String(decoding: try await server.send("GET", "/metrics").body, as: UTF8.self).contains("larder_streams 1") {
        await Task.yield()
      }
      #expect(try await server.push(onePush()).status == 200)
      let changes = try SyncChanges(json: try await page.body)
      #expect(changes.changes.count == 1)
    }
  }

  @Test func commitsOfAnotherProcessAreNoticed() async throws {
    try await TestServer.run(watch: .milliseconds(20)) { server in
      let (lines, task) = try EventReader.open(server.base + "/v1/scopes/user%2F42/events", token: TestTokens.ann)
      var iterator = lines.makeAsyncIterator()
      #expect(await iterator.next() == "id: 0")
      // Another store over the same file stands for another process: its commits pass no hub.
      let other = try await SQLSyncStore.open(sqlite: server.directory.file("store.sqlite"), logger: LogLines().logger())
      _ = try await other.push(onePush(), to: "user/42", by: "ann")
      await other.close()
      while let line = await iterator.next(), line != "id: 1" {}
      task.cancel()
    }
  }

  @Test func streamsEndWithTheServerAndRevokedTokensEndStreams() async throws {
    let directory = try TemporaryDirectory()
    var open: AsyncStream<String>?
    try await TestServer.run(in: directory, beat: .milliseconds(30)) { server in
      let (lines, _) = try EventReader.open(server.base + "/v1/scopes/user%2F42/events", token: TestTokens.ann)
      let (others, _) = try EventReader.open(server.base + "/v1/scopes/user%2F42/events", token: TestTokens.bob)
      var (one, two) = (lines.makeAsyncIterator(), others.makeAsyncIterator())
      #expect(await one.next() != nil)
      #expect(await two.next() != nil)
      let left = TestTokens.lines.filter { $0.identity != "ann" }
      try TokenTable(left).text.write(toFile: directory.file("tokens"), atomically: true, encoding: .utf8)
      while await one.next() != nil {}
      open = others
    }
    if let open { for await _ in open {} }
  }

  @Test func anAppMayRefuseRecords() async throws {
    let validator = RecordValidator { identity, scope, record in
      record.id == "b" ? SyncRejectionReason(code: "no-b", detail: "\(identity.name) in \(scope)") : nil
    }
    try await TestServer.run(validator: validator) { server in
      let reply = try SyncPushReply(json: try await server.push(onePush(id: "b")).body)
      #expect(reply.receipt.outcomes == [.rejected(code: "no-b", detail: "ann in user/42")])
    }
  }

  @Test func logsHaveNeitherTokensNorValues() async throws {
    try await TestServer.run { server in
      let pushed = try await server.push(onePush(value: #"{"secret":"hush"}"#))
      let refused = try await server.send("GET", "/v1/scopes?token=leak", token: "wrong-token")
      #expect(pushed.status == 200)
      #expect(refused.status == 401)
      let text = server.logs.text
      #expect(text.contains("/v1/scopes/{scope}/push"))
      let leaked = ["hush", TestTokens.ann, "wrong-token", "leak"].filter { word in text.contains(word) }
      #expect(leaked.isEmpty)
    }
  }

  @Test func theDescriptionIsJSONAndNamesEveryRoute() async throws {
    try await TestServer.run { server in
      let answer = try await server.send("GET", "/openapi.json", token: nil)
      let json = try JSONSerialization.jsonObject(with: answer.body) as? [String: Any]
      let paths = json?["paths"] as? [String: Any] ?? [:]
      let routes: [Route] = [
        .push(scope: "a"), .changes(scope: "a"), .events(scope: "a"), .scopes, .health, .readiness, .metrics, .description,
      ]
      #expect(Set(paths.keys) == Set(routes.map(\.template)))
      #expect(json?["openapi"] as? String == "3.1.0")
    }
  }

  @Test func anIdentityMayNotFillTheDatabaseWithScopes() async throws {
    var options = ServerOptions()
    options.scopesPerIdentity = 2
    try await TestServer.run(options: options) { server in
      var statuses: [Int] = []
      for scope in ["user%2F1", "user%2F2", "user%2F3"] {
        statuses.append(try await server.push(onePush(), to: scope, token: TestTokens.bob).status)
      }
      statuses.append(try await server.push(onePush(device: "d2", id: "b"), to: "user%2F2", token: TestTokens.bob).status)
      #expect(statuses == [200, 200, 422, 200])
    }
  }

  @Test func healthAndNumbersAreTold() async throws {
    try await TestServer.run { server in
      #expect(try await server.send("GET", "/healthz", token: nil).status == 200)
      #expect(try await server.send("GET", "/readyz", token: nil).status == 200)
      #expect(try await server.push(onePush()).status == 200)
      let text = String(decoding: try await server.send("GET", "/metrics", token: nil).body, as: UTF8.self)
      #expect(text.contains(#"larder_requests_total{route="/v1/scopes/{scope}/push",method="POST",status="200"} 1"#))
      #expect(text.contains(#"larder_push_groups_total{outcome="accepted"} 1"#))
    }
  }

  /// A token that may only write learns nothing of a record by guessing its id, neither at once nor when it asks for the outcome again.
  @Test func aTokenThatMayOnlyWriteReadsNothing() async throws {
    try await TestServer.run { server in
      #expect(try await server.push(onePush(id: "secret", value: #"{"n":"hidden"}"#)).status == 200)
      let guess = onePush(device: "pen", id: "secret")
      for _ in 0..<2 {
        let answer = try await server.push(guess, token: TestTokens.pen)
        #expect(answer.status == 200 && !String(decoding: answer.body, as: UTF8.self).contains("hidden"))
        #expect(try SyncPushReply(json: answer.body).receipt.outcomes == [.conflict([])])
      }
      let accepted = try await server.push(onePush(device: "pen", seq: 2, id: "new"), token: TestTokens.pen)
      #expect(try SyncPushReply(json: accepted.body).receipt.outcomes == [.accepted(2)])
      for path in ["changes", "events", "changes?device=pen"] {
        let status = try await server.send("GET", "/v1/scopes/user%2F42/\(path)", token: TestTokens.pen).status
        #expect(status == 403)
      }
      // To others the outcome of their own push tells what they lost against.
      let reply = try SyncPushReply(json: try await server.push(onePush(device: "d2", id: "secret")).body)
      guard case .conflict(let records)? = reply.receipt.outcomes.first else {
        Issue.record("\(reply)")
        return
      }
      #expect(records.count == 1)
    }
  }
}
