import Foundation
@_spi(Wire) import LarderWire
import Testing

@testable import LarderServer

/// The server refuses with 400 what is out of the bounds of the wire, stores nothing of it, and describes the bounds.
@Suite struct WireBoundTests {
  private static let recordFields: [WireField] = [.collection, .id, .base, .version, .stamp, .value]
  private static let pushFields: [WireField] = [.history, .device, .seq, .token, .clock]

  private static func samples(of bound: WireField.Bound) -> (allowed: [Any], refused: [Any]) {
    switch bound {
    case .text(let count):
      (
        [count.lowerBound, count.upperBound].map { String(repeating: "x", count: $0) },
        ["", String(repeating: "é", count: count.upperBound / 2 + 1), "a\0b", 7]
      )
    case .words: ([], [])
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

  /// Returns a push of one record with another value for one of its members.
  private static func push(_ device: String, _ field: WireField, _ value: Any) throws -> Data {
    var record: [String: Any] = ["in": "spots", "id": device, "base": 0, "version": 1, "stamp": 900, "value": ["n": 1]]
    var push: [String: Any] = ["device": device, "seq": 1, "token": "t", "clock": 1_000]
    if recordFields.contains(field) { record[field.rawValue] = value } else { push[field.rawValue] = value }
    push["groups"] = [["records": [record]]]
    return try JSONSerialization.data(withJSONObject: push)
  }

  @Test func aPushOutOfBoundsIsRefused() async throws {
    try await TestServer.run { server in
      for (number, field) in (Self.recordFields + Self.pushFields).enumerated() {
        let (allowed, refused) = Self.samples(of: field.bound)
        for (position, value) in allowed.enumerated() {
          let body = try Self.push("good-\(number)-\(position)", field, value)
          let status = try await server.send("POST", "/v1/scopes/user%2F42/push", body: body).status
          #expect([200, 409].contains(status), "\(field): \(value)")
        }
        for value in refused {
          let answer = try await server.send("POST", "/v1/scopes/user%2F42/push", body: Self.push("bad", field, value))
          #expect(answer.status == 400, "\(field): \(value)")
        }
      }
      let page = try SyncChanges(json: try await server.send("GET", "/v1/scopes/user%2F42/changes").body)
      #expect(!page.changes.isEmpty && page.changes.allSatisfy { $0.id != "bad" })
    }
  }

  @Test func aQuestionOutOfBoundsIsRefused() async throws {
    try await TestServer.run { server in
      let changes = "/v1/scopes/user%2F42/changes?"
      for name in ["since", "from", "limit", "wait"] {
        for value in ["-1", "9007199254740992", "9223372036854775808", "0x1", "1.5", "%00"] {
          let status = try await server.send("GET", "\(changes)\(name)=\(value)").status
          #expect(status == 400, "\(name)=\(value)")
        }
      }
      for name in ["device", "history", "collections"] {
        for value in ["%00", "a%00b", String(repeating: "x", count: 1_025)] {
          let status = try await server.send("GET", "\(changes)\(name)=\(value)").status
          #expect(status == 400, "\(name)=\(value.prefix(8))")
        }
      }
      let scope = String(repeating: "s", count: 1_025)
      let status = try await server.send("GET", "/v1/scopes/\(scope)/changes").status
      #expect(status == 400)
    }
  }

  /// A rule of the app may give a reason of any length: what is kept and sent with each page is within the bounds.
  @Test func aReasonIsCut() async throws {
    let validator = RecordValidator { _, _, _ in
      SyncRejectionReason(code: String(repeating: "c", count: 1_000), detail: String(repeating: "d", count: 10_000) + "\u{1B}[2J")
    }
    try await TestServer.run(validator: validator) { server in
      let reply = try SyncPushReply(json: try await server.push(onePush()).body)
      guard case .rejected(let code, let detail)? = reply.receipt.outcomes.first else {
        Issue.record("\(reply)")
        return
      }
      #expect(code.utf8.count == 64 && detail.utf8.count == 1_024)
    }
  }

  @Test func theDescriptionHasTheBounds() throws {
    let description = try #require(try JSONSerialization.jsonObject(with: ServerDescription.json) as? [String: Any])
    let schemas = try #require((description["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
    var seen: Set<WireField> = []
    /// Returns a form, or the one that it refers to.
    func resolved(_ form: [String: Any]) throws -> [String: Any] {
      guard let name = (form["$ref"] as? String)?.split(separator: "/").last else { return form }
      return try #require(schemas[String(name)], "\(name)")
    }
    /// Compares the members of a form, and of the forms in it.
    func compare(_ form: [String: Any]) throws {
      for part in form["allOf"] as? [[String: Any]] ?? [] { try compare(resolved(part)) }
      if let items = form["items"] as? [String: Any] { try compare(resolved(items)) }
      for (name, member) in form["properties"] as? [String: [String: Any]] ?? [:] {
        let member = try resolved(member)
        try compare(member)
        guard let field = WireField(rawValue: name), member["properties"] == nil else { continue }
        let (least, most) = (member["minimum"] ?? member["minLength"], member["maximum"] ?? member["maxLength"])
        switch field.bound {
        case .text(let range): #expect(least as? Int == range.lowerBound && most as? Int == range.upperBound, "\(name)")
        case .number(let range): #expect(least as? Int == Int(range.lowerBound) && most as? Int == Int(range.upperBound), "\(name)")
        case .words(let count): #expect(most as? Int == count, "\(name)")
        case .json: break
        }
        seen.insert(field)
      }
    }
    for name in ["Push", "PushReply", "Changes", "Problem"] { try compare(try #require(schemas[name])) }
    #expect(Set(WireField.allCases).subtracting(seen) == [.scope, .pending, .app], "parameters alone")
  }
}
