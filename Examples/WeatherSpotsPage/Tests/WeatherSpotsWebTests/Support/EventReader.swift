import Foundation
import Larder
import Testing

/// An event as a browser reads it.
struct TestEvent: Sendable, Equatable {
  var id: String?
  var name = ""
  var data = ""

  var json: JSONValue { JSONValue(orNull: Data(data.utf8)) }
  /// The names of changed spots, with those that are gone in brackets.
  var spots: [String] { json["changes"]?.arrayValue?.map { $0["spot"]?["name"]?.stringValue ?? "(\($0["id"]?.stringValue ?? ""))" } ?? [] }
}

/// A reader of one event stream.
struct EventReader {
  let connection: RawConnection

  /// Opens a stream; returns when it is open.
  static func open(_ web: TestWeb, _ query: String = "", headers: [String: String] = [:]) async throws -> EventReader {
    let connection = try await RawConnection.open(web.port)
    let fields = headers.map { "\($0): \($1)\r\n" }.joined()
    try await connection.write("GET /api/events\(query) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(fields)\r\n")
    let head = try await connection.read(until: "retry: 1000\n\n\r\n")
    try #require(head.hasPrefix("HTTP/1.1 200 "), "\(head)")
    return EventReader(connection: connection)
  }

  /// Returns the next event; `nil` at the end.
  func next() async throws -> TestEvent? {
    var event = TestEvent()
    while true {
      let line = try await connection.read(until: "\n")
      if line.isEmpty { return nil }
      let text = line.trimmingCharacters(in: .newlines)
      if text.isEmpty, !event.name.isEmpty { return event }
      if text.hasPrefix("id: ") { event.id = String(text.dropFirst(4)) }
      if text.hasPrefix("event: ") { event.name = String(text.dropFirst(7)) }
      if text.hasPrefix("data: ") { event.data = String(text.dropFirst(6)) }
    }
  }

  func close() throws { try connection.close() }
}
