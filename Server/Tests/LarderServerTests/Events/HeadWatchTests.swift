import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// The newest commits that streams are told of, and where they are from.
@Suite(.timeLimit(.minutes(15))) struct HeadWatchTests {
  private static func stream(_ server: TestServer) async throws -> RawConnection {
    let stream = try RawConnection(port: server.port)
    await stream.send("GET /v1/scopes/user%2F42/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\n\r\n")
    return stream
  }

  /// What a reader says that it knows is told to nobody: streams would take all that comes for old.
  @Test func whoAsksBehindEverythingSilencesNobody() async throws {
    try await TestServer.run(watch: .seconds(3_600)) { server in
      let stream = try await Self.stream(server)
      #expect(await stream.read(until: #""head":0}"#).contains("id: 0\n"))
      let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes?since=9007199254740991&wait=1")
      let page = try SyncChanges(json: answer.body)
      #expect(page.changes.isEmpty && page.head == 9_007_199_254_740_991 && page.until == page.head)
      #expect(try await server.push(onePush()).status == 200)
      let told = await stream.read(until: #""head":1}"#)
      #expect(told.contains("id: 1\n") && !told.contains("9007199254740991"))
      let later = try await Self.stream(server)
      let first = await later.read(until: "}\n")
      #expect(first.contains(#"data: {"head":1}"#) && !first.contains("9007199254740991"))
    }
  }

  /// As after a restore, or a failover that lost commits, whether the history tells of it or not.
  @Test(arguments: [false, true]) func whatTheDatabaseDoesNotHaveIsForgotten(isNewHistory: Bool) async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLSyncStore.open(sqlite: directory.file("s"), logger: LogLines().logger())
    _ = try await store.push(onePush(), to: "a", by: "ann")
    let hub = HeadHub()
    let (poll, other) = (hub.signs(of: "a"), hub.signs(of: "b", isStream: true))
    // From before the first look, which then knows of no other history.
    hub.publish(1 << 40, of: "a")
    if isNewHistory { try await store.changeHistory() }
    let watch = Task { try await HeadWatch(hub: hub, store: store, interval: .milliseconds(1)).run() }
    for await _ in poll.signs {}
    let next = hub.signs(of: "a")
    var told: Int?
    for await case .head(let head) in next.signs {
      told = head
      break
    }
    #expect(told == 1)
    #expect(hub.heads["b"] == 0)
    watch.cancel()
    try await watch.value
    other.end()
    await store.close()
  }
}
