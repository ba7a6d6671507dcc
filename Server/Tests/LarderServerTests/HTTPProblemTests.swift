import Foundation
import Hummingbird
import LarderWire
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// Problems as answers, whose bytes devices and other clients parse.
@Suite struct HTTPProblemTests {
  private static let problems: [SyncProblem] = [
    .unreachable("a"), .unavailable(retryAfter: nil), .unavailable(retryAfter: 2.1), .tooManyRequests(retryAfter: nil),
    .tooManyRequests(retryAfter: 0.2), .unauthorized, .forbidden, .resync(horizon: 7), .history("h\u{1}\"1"), .gap(last: 1 << 53 - 1),
    .upgradeRequired(minimum: 3), .tooLarge, .answerTooLarge, .tooManyScopes(most: 2), .overQuota("a"), .noProgress("a"),
    .malformed("a/b \\ \"c\" \u{0}\u{8}\t\n\u{B}\u{C}\r\u{1F}\u{7F} é \u{2028} \u{1F600}"), .refused(status: 415, detail: ""),
  ]

  @Test(arguments: problems) func aProblemOfSyncIsAnsweredWithTheBytesOfTheWire(_ problem: SyncProblem) {
    let answer = HTTPProblem(problem)
    #expect(answer.status.code == problem.status)
    #expect(String(decoding: answer.json, as: UTF8.self) == String(decoding: problem.json, as: UTF8.self))
  }

  @Test func problemsOfHTTPHaveTheBytesOfThoseOfSync() {
    for (problem, same) in [
      (.malformed("expected one Host, found 2"), .malformed("expected one Host, found 2")), (.tooLarge, .tooLarge),
      (.unavailable(retryAfter: 5), .unavailable(retryAfter: 5)),
      (KnownPath.nothing, .refused(status: 404, detail: "There is nothing at this path.")),
      (KnownPath("/a", [.get, .put]).wrongMethod, .refused(status: 405, detail: "Expected the method GET or PUT.")),
    ] as [(HTTPProblem, SyncProblem)] {
      #expect(problem.status.code == same.status)
      #expect(problem.retryAfter == HTTPProblem(same).retryAfter)
      #expect(String(decoding: problem.json, as: UTF8.self) == String(decoding: same.json, as: UTF8.self))
    }
  }

  @Test func secondsToWaitAreRoundedUp() {
    let seconds = Self.problems.map { HTTPProblem($0).retryAfter }
    #expect(seconds == [nil, 1, 3, 1, 1] + Array(repeating: nil, count: Self.problems.count - 5))
    #expect(Answer.problem(HTTPProblem(.unavailable(retryAfter: 2.1))).headers[.retryAfter] == "3")
  }

  @Test func aStatusHasTheFieldThatItRequires() {
    let path = KnownPath("/a", [.get, .put])
    #expect(Answer.problem(path.wrongMethod, at: path).headers[.allow] == "GET, PUT")
    #expect(Answer.problem(HTTPProblem(.unauthorized)).headers[.wwwAuthenticate] == "Bearer")
    #expect(Answer.problem(HTTPProblem(.forbidden)).headers[.wwwAuthenticate] == nil)
    for problem in Self.problems.map({ HTTPProblem($0) }) {
      #expect(Answer.problem(problem).headers[.contentType] == "application/problem+json")
      #expect(Answer.problem(problem).headers[.cacheControl] == "no-store")
    }
  }

  @Test func aProblemOfItsOwnHasItsMembersInOrder() {
    let problem = HTTPProblem(
      .notFound, detail: "No \"spot\".",
      members: ["z": .null, "a": .list([.number(1), .object(["b": .text("c"), "a": .encoded("1.5")])]), "status": .text("not this one")])
    #expect(
      String(decoding: problem.json, as: UTF8.self)
        == #"{"a":[1,{"a":1.5,"b":"c"}],"detail":"No \"spot\".","status":404,"title":"Not Found","type":"about:blank","z":null}"#)
  }
}
