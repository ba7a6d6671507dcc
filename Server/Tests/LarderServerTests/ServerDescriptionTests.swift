import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// The description of the wire against what goes over it.
@Suite struct ServerDescriptionTests {
  @Test func everyMemberOfAProblemIsDescribed() throws {
    let description = try #require(try JSONSerialization.jsonObject(with: ServerDescription.json) as? [String: Any])
    let components = try #require(description["components"] as? [String: Any])
    let schemas = try #require(components["schemas"] as? [String: Any])
    let form = try #require(schemas["Problem"] as? [String: Any])
    let described = Set(try #require(form["properties"] as? [String: Any]).keys)
    let problems: [SyncProblem] = [
      .unreachable("a"), .unavailable(retryAfter: 1), .tooManyRequests(retryAfter: 1), .unauthorized, .forbidden, .resync(horizon: 1),
      .history("a"), .gap(last: 1), .upgradeRequired(minimum: 1), .tooLarge, .answerTooLarge, .tooManyScopes(most: 1), .noProgress("a"),
      .overQuota("a"),
      .malformed("a"), .refused(status: 415, detail: "a"),
    ]
    for problem in problems {
      let members = try #require(try JSONSerialization.jsonObject(with: problem.json) as? [String: Any])
      #expect(described.isSuperset(of: members.keys), "\(problem)")
    }
  }
}
