import Foundation
import LarderWire
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// What stands behind `?`, and the order of what is answered.
@Suite(.timeLimit(.minutes(15))) struct RequestQueryTests {
  private static func question(_ query: String, longestWait: Int = 25) throws -> SyncChangesRequest {
    try RequestQuery(query).changesRequest(longestWait: longestWait)
  }

  @Test func emptyNumbersAndOtherFormsAreRefused() async throws {
    try await TestServer.run { server in
      for name in ["since", "limit", "from", "wait"] {
        for value in ["", "=", "=%20", "=%2B5", "=-0", "=1.0", "=0x1", "=1e3", "=%D9%A1", "=9007199254740992", "=-1", "=a"] {
          let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes?device=d1&\(name)\(value)")
          #expect(answer.status == 400, "\(name)\(value)")
        }
      }
    }
  }

  @Test func aParameterComesOnce() async throws {
    try await TestServer.run { server in
      for query in ["since=1&since=2", "since=1&since=1", "device=a&device=b", "since=1&sinc%65=1", "collections=a&collections=b", "x&x"] {
        let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes?\(query)")
        #expect(answer.status == 400, "\(query)")
      }
      #expect(try await server.send("GET", "/v1/scopes/user%2F42/changes?since=0&limit=2&x=y&device=&collections=").status == 200)
    }
  }

  @Test func numbersBeyondTheMostAreTakenAsTheMost() throws {
    #expect(try Self.question("wait=1000000000").wait == 25)
    #expect(try Self.question("wait=3").wait == 3)
    #expect(try Self.question("limit=1000000000").limit == 5_000)
    #expect(try Self.question("limit=0").limit == 1)
    #expect(try Self.question("").limit == 1_000)
    let description = String(decoding: ServerDescription.json, as: UTF8.self)
    #expect(description.contains("taken as 5000"))
    #expect(description.contains("taken as the most"))
  }

  @Test func emptyNamesInAListCountAndAreLeftOut() throws {
    #expect(try Self.question("collections=a,,b,").collections == ["a", "b"])
    #expect(try Self.question("collections=" + String(repeating: ",", count: 999)).collections == [])
    #expect(throws: HTTPProblem.self) { try Self.question("collections=" + String(repeating: ",", count: 1_000)) }
  }

  @Test func everyOperationMayFindThatTheRequestCannotBeRead() {
    for (route, statuses) in ServerDescription.statuses { #expect(statuses.contains(400), "\(route)") }
  }

  @Test func scopesAreListedInTheOrderOfTheirBytes() async throws {
    // Two of them are the same text in two forms of Unicode, and two scopes.
    let names = ["user/B", "user/a", "user/a/b", "user/ab", "user/e\u{301}", "user/z", "user/\u{e9}", "user/\u{10000}"]
    try await TestServer.run { server in
      for (number, name) in names.shuffled().enumerated() {
        _ = try await server.store.push(onePush(device: "d\(number)"), to: name, by: "bob")
      }
      for _ in 0..<2 {
        let answer = try await server.send("GET", "/v1/scopes", token: TestTokens.bob)
        let found = try SyncScopes(json: answer.body).scopes.map(\.name)
        #expect(found.map { Array($0.utf8) } == names.map { Array($0.utf8) })
      }
    }
  }
}
