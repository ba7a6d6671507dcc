import Foundation
import Larder
import Testing

@testable import WeatherSpotsKit
@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebWritingTests {
  private static let path = "/api/spots/\("Brest @48.39029,-4.48628".escaped)"

  private func row(_ web: TestWeb, _ change: (inout JSONValue) -> Void = { _ in }) async throws -> String {
    var row = try await web.get(Self.path).json
    change(&row)
    return String(decoding: row.json, as: UTF8.self)
  }

  @Test func aSpotIsWrittenAtItsRevisionOnly() async throws {
    try await TestWeb.run { web in
      let mine = try await row(web) { $0["rating"] = 3 }
      let done = try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "\"1\""])
      #expect(done.status == 200)
      #expect(done.headers["etag"] == "\"2\"")
      #expect(done.json["rating"]?.intValue == 3)
      let lost = try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "\"1\""])
      #expect(lost.status == 412)
      #expect(lost.json["current"]?["revision"]?.intValue == 2)
      #expect(lost.headers["content-type"] == "application/problem+json")
      // One of several will do; a weak one, or one that cannot be, matches nothing.
      #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "\"1\", \"2\""]).status == 200)
      for tag in ["W/\"2\"", "\"x\"", "\"02\"", "\"99999999999999999999999\""] {
        #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": tag]).status == 412)
      }
      for tag in ["\"2", "02", "nonsense", "\"2\" \"3\"", ","] {
        #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": tag]).status == 400)
      }
      #expect(try await web.send("PUT", Self.path, body: mine).status == 428)
      #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "*"]).status == 200)
    }
  }

  @Test func aSpotThatIsGoneIsLostToItsWriter() async throws {
    try await TestWeb.run { web in
      let mine = try await row(web)
      #expect(try await web.send("DELETE", Self.path, headers: ["If-Match": "\"7\""]).status == 412)
      #expect(try await web.send("DELETE", Self.path, headers: ["If-None-Match": "*"]).status == 412)
      #expect(try await web.send("DELETE", Self.path, headers: ["If-Match": "\"1\""]).status == 204)
      #expect(try await web.send("DELETE", Self.path).status == 404)
      let lost = try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "\"1\""])
      #expect(lost.status == 412)
      #expect(lost.json["current"]?.isNull == true)
      #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-None-Match": "*"]).status == 201)
      #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-None-Match": "*"]).status == 412)
    }
  }

  @Test func aWriteWithAKeyIsDoneOnce() async throws {
    try await TestWeb.run { web in
      let mine = try await row(web) { $0["visits"] = 1 }
      let headers = ["If-Match": "\"1\"", "Idempotency-Key": "0123-4567"]
      #expect(try await web.send("PUT", Self.path, body: mine, headers: headers).headers["etag"] == "\"2\"")
      // The answer was lost: the same again, also after another change, is the first one.
      #expect(try await web.send("PUT", Self.path, body: mine, headers: headers).headers["etag"] == "\"2\"")
      try await web.storage.change(["Brest @48.39029,-4.48628"]) { try $0.visited() }
      let again = try await web.send("PUT", Self.path, body: mine, headers: headers)
      #expect(again.status == 200)
      #expect(again.json["visits"]?.intValue == 2)
      let other = try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "\"1\"", "Idempotency-Key": "0123-4568"])
      #expect(other.status == 412)
      // A key belongs to one write: neither another body nor another spot has it.
      let changed = try await row(web) { $0["visits"] = 9 }
      #expect(try await web.send("PUT", Self.path, body: changed, headers: headers).status == 422)
      let annecy = "/api/spots/\(try TestWeb.spots()[1].id.escaped)"
      let body = try await web.get(annecy).text
      #expect(try await web.send("PUT", annecy, body: body, headers: headers).status == 422)
      #expect(try await web.send("PUT", Self.path, body: mine, headers: headers).json["visits"]?.intValue == 2)
      for key in ["", "short", "with a blank", String(repeating: "x", count: 65)] {
        #expect(try await web.send("PUT", Self.path, body: mine, headers: ["If-Match": "*", "Idempotency-Key": key]).status == 400)
      }
    }
  }

  @Test func receiptsAreBounded() async throws {
    try await TestWeb.run { web in
      let spot = try TestWeb.spots()[1]
      for number in 0...WriteReceipt.most + 10 { _ = try await web.storage.put(spot, expecting: .present, key: "key-\(number)") }
      #expect(try await web.storage.receipts().count() == WriteReceipt.most)
      #expect(try await web.storage.receipts().find(by: "key-10") == nil)
      #expect(try await web.storage.receipts().find(by: "key-11") != nil)
    }
  }

  @Test func valuesThatCannotBeAreNamed() async throws {
    try await TestWeb.run { web in
      func expect(_ status: Int, _ field: String?, _ body: String, _ line: Int = #line) async throws {
        let answer = try await web.send("PUT", Self.path, body: body, headers: ["If-Match": "\"1\""])
        #expect(answer.status == status, "line \(line): \(answer.text)")
        #expect(answer.json["field"]?.stringValue == field, "line \(line)")
      }
      try await expect(422, "rating", try await row(web) { $0["rating"] = 6 })
      try await expect(422, "rating", try await row(web) { $0["rating"] = "best" })
      try await expect(422, "notes", try await row(web) { $0["notes"] = "two\nlines" })
      try await expect(422, "visits", try await row(web) { $0["visits"] = -1 })
      try await expect(422, "visits", try await row(web) { $0["visits"] = nil })
      try await expect(422, "tags", try await row(web) { $0["tags"] = ["two words"] })
      try await expect(422, "id", try await row(web) { $0["name"] = "Other" })
      try await expect(422, "id", try await row(web) { $0["id"] = "Other" })
      try await expect(400, nil, "{")
      try await expect(400, nil, "[]")
      try await expect(400, nil, String(repeating: "[", count: 5_000))
      try await expect(413, nil, try await row(web) { $0["notes"] = JSONValue(String(repeating: "x", count: 70_000)) })
      #expect(try await web.get(Self.path).headers["etag"] == "\"1\"")
    }
  }

  @Test func everyValueThatCannotBeIsNamed() async throws {
    try await TestWeb.run { web in
      let body = try await row(web) { row in
        row["rating"] = 6
        row["notes"] = JSONValue(String(repeating: "x", count: 1_001))
        row["tags"] = ["two words"]
        row["visits"] = 1
        row["kind"] = "two\nlines"
      }
      let answer = try await web.send("PUT", Self.path, body: body, headers: ["If-Match": "\"1\""])
      #expect(answer.status == 422 && answer.json["field"]?.stringValue == "kind")
      let errors = try #require(answer.json["errors"]?.arrayValue)
      #expect(errors.compactMap { $0["field"]?.stringValue } == ["kind", "rating", "notes", "tags"])
      for error in errors { #expect(answer.json["detail"]?.stringValue?.contains(try #require(error["detail"]?.stringValue)) == true) }
      #expect(try await web.get(Self.path).headers["etag"] == "\"1\"")
    }
  }

  /// A decoder ends at the first value of another kind.
  @Test func valuesOfAnotherKindAreAllNamed() async throws {
    try await TestWeb.run { web in
      func fields(_ change: (inout JSONValue) -> Void) async throws -> [String] {
        let answer = try await web.send("PUT", Self.path, body: try await row(web, change), headers: ["If-Match": "\"1\""])
        #expect(answer.status == 422, "\(answer.text)")
        return answer.json["errors"]?.arrayValue?.compactMap { $0["field"]?.stringValue } ?? []
      }
      func changed(_ values: [String: JSONValue?]) async throws -> [String] {
        try await fields { row in for (name, value) in values { row[name] = value } }
      }
      #expect(try await changed(["rating": "x", "notes": 5]) == ["rating", "notes"])
      #expect(try await changed(["rating": 4.5]) == ["rating"])
      #expect(try await changed(["rating": .null, "tags": "pier", "visits": -1]) == ["rating", "tags", "visits"])
      #expect(try await changed(["name": nil, "kind": "two\nlines", "id": 5]) == ["id", "name", "kind"])
      let answer = try await web.send("PUT", Self.path, body: #"{"rating":"x","notes":5}"#, headers: ["If-Match": "\"1\""])
      #expect(answer.json["errors"]?.arrayValue?.count == 12)
      #expect(answer.json["detail"]?.stringValue?.contains("rating is not a whole number; notes is not a text") == true)
      #expect(try await web.get(Self.path).headers["etag"] == "\"1\"")
    }
  }

  @Test func noVisitIsLostAmongManyWriters() async throws {
    try await TestWeb.run { web in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            for _ in 0..<5 { try await count(web) }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await web.get(Self.path).json["visits"]?.intValue == 40)
    }
  }

  /// Counts a visit as a browser does: what lost the race begins again with what was there first.
  private func count(_ web: TestWeb) async throws {
    while true {
      let read = try await web.get(Self.path)
      var row = read.json
      row["visits"] = JSONValue((row["visits"]?.intValue ?? 0) + 1)
      let body = String(decoding: row.json, as: UTF8.self)
      let answer = try await web.send("PUT", Self.path, body: body, headers: ["If-Match": try #require(read.headers["etag"])])
      if answer.status == 200 { return }
      try #require(answer.status == 412)
    }
  }
}
