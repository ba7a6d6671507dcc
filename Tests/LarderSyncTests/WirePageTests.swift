import Foundation
@_spi(Wire) import LarderSync
import Testing

/// The page about the wire shows messages; these tests read them, and write the same.
@Suite struct WirePageTests {
  @Test func theWirePageShowsWhatIsWritten() throws {
    let messages = try WirePage.messages()
    try #require(messages.count == 4)
    let (push, reply, page) = (
      try SyncPush(json: messages[0]), try SyncPushReply(json: messages[1]), try SyncChanges(json: messages[2])
    )
    #expect(text(push.json) == text(messages[0]))
    #expect(text(reply.json) == text(messages[1]))
    #expect(text(page.json) == text(messages[2]))
    #expect(text(try SyncScopes(json: messages[3]).json) == text(messages[3]))
    #expect(push.groups[0].map(\.value) == [Data(#"{"name":"Jogashima"}"#.utf8), nil])
    #expect(reply.receipt.outcomes.count == 3)
    #expect(page.changes.map(\.revision) == [4790, 4802])
  }

  @Test func theWirePageNamesEachProblem() throws {
    let page = try WirePage.text()
    let problems: [SyncProblem] = [
      .unavailable(retryAfter: nil), .tooManyRequests(retryAfter: nil), .unauthorized, .forbidden, .resync(horizon: 1), .history("h"),
      .gap(last: 1), .upgradeRequired(minimum: 2), .tooLarge, .tooManyScopes(most: 3), .overQuota(""), .malformed(""),
      .refused(status: 422, detail: ""),
    ]
    for problem in problems {
      let json = try #require(try JSONSerialization.jsonObject(with: problem.json) as? [String: Any])
      let name = try #require(json["type"] as? String).dropFirst("urn:larder:problem:".count)
      let isThere = page.split(separator: "\n").contains { $0.hasPrefix("| \(problem.status)") && $0.contains("`\(name)`") }
      #expect(isThere, "\(name) of status \(problem.status) is not in the table")
    }
  }

  /// A server stores a receipt for each device, and one of an earlier version may read it beside this one.
  @Test func aRememberedReceiptNamesRecordsAndHoldsNoValue() throws {
    let record = SyncRecord(collection: "c", id: "a", revision: 7, value: Data(#""secret""#.utf8))
    let outcomes: [SyncOutcome] = [.accepted(3), .conflict([record, record]), .rejected(code: "x", detail: "y")]
    let receipt = SyncReceipt(seq: 1, token: "t", outcomes: outcomes)
    #expect(!text(receipt.remembered).contains("secret"))
    // A server of an earlier version reads a conflict without records, and devices then read the changes.
    #expect(try SyncReceipt(json: receipt.remembered).outcomes == [.accepted(3), .conflict([]), .rejected(code: "x", detail: "y")])
    for stored in [receipt.remembered, receipt.json] {
      let read = try SyncReceipt(remembered: stored)
      #expect(read.filled { $0.id == "a" && $0.value == nil ? record : nil } == receipt)
      let fitting = read.filled(bytes: 15) { _ in record }
      #expect(fitting.outcomes[1] == .conflict([record]))
    }
  }

  private func text(_ json: Data) -> String { String(decoding: json, as: UTF8.self) }
}

/// The page about the wire, and the messages that it shows.
enum WirePage {
  static func messages() throws -> [Data] {
    try text().components(separatedBy: "```json\n").dropFirst().map { Data($0.prefix { $0 != "\n" }.utf8) }
  }

  static func text() throws -> String {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { root.deleteLastPathComponent() }
    return try String(contentsOf: root.appendingPathComponent("Docs/Larder.docc/Formats/SyncWire.md"), encoding: .utf8)
  }
}
