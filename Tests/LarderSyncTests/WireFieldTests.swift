import Foundation
import Testing

@_spi(Wire) @testable import LarderSync

/// Each member of the messages that the page about the wire shows has a bound, and values beyond it are refused where they arrive.
@Suite struct WireFieldTests {
  /// The members that hold other members, or a truth.
  private static let structure: Set<String> = [
    "groups", "records", "outcomes", "conflict", "rejected", "changes", "last", "deleted", "more", "value",
  ]

  /// A place of a member in a message.
  private struct Place: CustomStringConvertible {
    var path: [Step]
    var field: WireField
    var description: String { "\(field) at \(path)" }
  }

  private enum Step: Hashable {
    case name(String)
    case index(Int)
  }

  @Test func aPushOutOfBoundsIsRefused() throws {
    try expectBounds(in: WirePage.messages()[0]) { json in _ = try SyncPush(json: json) }
  }

  @Test func aReplyOutOfBoundsIsRefused() throws {
    try expectBounds(in: WirePage.messages()[1]) { json in
      let reply = try SyncPushReply(json: json)
      // An engine sets records aside one by one.
      for case .conflict(let records) in reply.receipt.outcomes { for record in records { try record.check() } }
    }
  }

  @Test func aPageOutOfBoundsIsRefused() throws {
    try expectBounds(in: WirePage.messages()[2]) { json in
      for record in try SyncChanges(json: json).changes { try record.check() }
    }
  }

  /// What a transport hands over that has parsed nothing is checked, too.
  @Test func valuesThatWereNeverJSONAreChecked() throws {
    let receipt = SyncReceipt(seq: 1, token: "t", outcomes: [.accepted(-1)])
    #expect(throws: SyncProblem.self) { try receipt.check() }
    let sound = SyncReceipt(seq: 1, token: "t", outcomes: [])
    #expect(throws: SyncProblem.self) { try SyncPushReply(history: "h", now: .min, receipt: sound).check() }
    #expect(throws: SyncProblem.self) { try SyncChanges(history: "h", since: 0, until: -1, head: 0).check() }
    #expect(throws: SyncProblem.self) { try SyncChanges(history: "", since: 0, until: 0, head: 0).check() }
    #expect(throws: SyncProblem.self) { try SyncChanges(history: "h", since: 0, until: 0, head: 0, last: receipt).check() }
  }

  @Test func problemsOutOfBoundsSayNothing() {
    let body = { (text: String) in Data(text.utf8) }
    #expect(SyncProblem(status: 410, body: body(#"{"horizon":-5}"#)) == .resync(horizon: 0))
    #expect(SyncProblem(status: 409, body: body(#"{"last":9007199254740992}"#)) == .refused(status: 409, detail: ""))
    #expect(SyncProblem(status: 409, body: body(#"{"history":"","last":3}"#)) == .gap(last: 3))
    let long = String(repeating: "h", count: 1_025)
    #expect(SyncProblem(status: 409, body: body(#"{"history":"\#(long)"}"#)) == .refused(status: 409, detail: ""))
    #expect(SyncProblem(status: 426, body: body(#"{"minimum":2147483648}"#)) == .upgradeRequired(minimum: 0))
    #expect(SyncProblem(status: 422, body: body(#"{"detail":"\u001b[2Jcleared"}"#)) == .refused(status: 422, detail: "[2Jcleared"))
  }

  @Test func wordsAreCutBetweenCharacters() {
    let text = String(repeating: "é", count: 2_000) + "\n"
    #expect(WireField.detail.cut(text) == String(repeating: "é", count: 512))
    #expect(WireField.code.cut("a\u{202E}b\u{7}c\u{2028}") == "abc")
    #expect(WireField.detail.cut("👩‍👧 fits") == "👩‍👧 fits")
  }

  @Test func theWirePageShowsTheBounds() throws {
    let rows = WireField.allCases.map { field -> String in
      let bound =
        switch field.bound {
        case .text(let count): "a text of \(count.lowerBound) to \(count.upperBound) bytes of UTF-8, without U+0000"
        case .words(let most): "a text for people: the receiver cuts it after \(most) bytes of UTF-8, and drops control characters"
        case .number(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
        case .json(let depth): "JSON of at most \(depth) nested levels"
        }
      return "| `\(field.rawValue)` | \(bound) |"
    }
    #expect(try WirePage.text().contains(rows.joined(separator: "\n")), "\(rows.joined(separator: "\n"))")
  }

  // MARK: Changing a member

  private func expectBounds(in message: Data, _ read: (Data) throws -> Void) throws {
    try read(message)
    let root = try JSONSerialization.jsonObject(with: message)
    let places = try Self.places(in: root, [])
    #expect(!places.isEmpty)
    for place in places {
      let (allowed, refused) = Self.samples(of: place.field.bound)
      for value in allowed {
        let json = try Self.message(root, with: value, at: place)
        #expect(throws: Never.self, "\(place): \(value)") { try read(json) }
      }
      for value in refused {
        let json = try Self.message(root, with: value, at: place)
        #expect(throws: SyncProblem.self, "\(place): \(value)") { try read(json) }
      }
    }
  }

  private static func places(in value: Any, _ path: [Step]) throws -> [Place] {
    if let object = value as? [String: Any] {
      return try object.sorted { $0.key < $1.key }.flatMap { name, value -> [Place] in
        let path = path + [.name(name)]
        if name == "value" { return [Place(path: path, field: .value)] }
        if structure.contains(name) { return try places(in: value, path) }
        return [Place(path: path, field: try #require(WireField(rawValue: name), "\(name) has no bound"))]
      }
    }
    let elements = value as? [Any] ?? []
    return try elements.enumerated().flatMap { try places(in: $1, path + [.index($0)]) }
  }

  private static func samples(of bound: WireField.Bound) -> (allowed: [Any], refused: [Any]) {
    switch bound {
    case .text(let count):
      (
        [count.lowerBound, count.upperBound].map { String(repeating: "x", count: $0) },
        [String(repeating: "é", count: count.upperBound / 2 + 1), "a\0b", 7] + (count.lowerBound > 0 ? [""] : [])
      )
    case .words(let most): ([String(repeating: "x", count: most + 1)], [7])
    case .number(let range):
      ([range.lowerBound, range.upperBound], [range.lowerBound - 1, range.upperBound + 1, Int.max, Int.min, 0.5, "1"])
    case .json(let depth): ([nested(depth)], [nested(depth + 1)])
    }
  }

  private static func nested(_ levels: Int) -> Any {
    var value: Any = [Any]()
    for _ in 1..<levels { value = [value] }
    return value
  }

  private static func message(_ root: Any, with value: Any, at place: Place) throws -> Data {
    try JSONSerialization.data(withJSONObject: replaced(root, place.path[...], with: value))
  }

  private static func replaced(_ root: Any, _ path: ArraySlice<Step>, with value: Any) throws -> Any {
    guard let step = path.first else { return value }
    switch step {
    case .name(let name):
      var object = try #require(root as? [String: Any])
      object[name] = try replaced(object[name] as Any, path.dropFirst(), with: value)
      return object
    case .index(let index):
      var elements = try #require(root as? [Any])
      elements[index] = try replaced(elements[index], path.dropFirst(), with: value)
      return elements
    }
  }
}
