import Foundation
import Larder
import NIOCore
import WeatherSpotsKit

/// Encoder of the events of a stream in the format of server-sent events (HTML Standard, 9.2).
enum EventText {
  /// First bytes of a stream, which open it at once in the browser and set its delay before a reconnection to one second.
  static let start = ByteBuffer(string: "retry: 1000\n\n")
  /// Keep-alive: an empty comment, which a browser ignores.
  static let beat = ByteBuffer(string: ":\n\n")

  /// Returns the event `spots` of a set of changes, with its revision as the id from which a client resumes.
  static func changes(_ set: ChangeSet<Spot>, _ rows: RowCache) throws -> ByteBuffer {
    let changes = try set.changes.compactMap { change -> String? in
      // A record that this version cannot decode is left out: `null` would remove a spot from the page that is still stored.
      guard let id = change.id, change.error == nil else { return nil }
      let spot = try change.new.map { try rows.text(of: $0, at: change.revision) }
      return "{\"id\":\(try ReportJSON.text(id)),\"spot\":\(spot ?? "null")}"
    }
    return ByteBuffer(
      string: event("spots", id: set.revision, "{\"changes\":[\(changes.joined(separator: ","))],\"revision\":\(set.revision)}"))
  }

  /// Returns the event `forecast`, which says that the forecast of a spot was fetched or has become stale.
  static func forecast(of id: String, fetchedAt: Date) throws -> ByteBuffer {
    let row: JSONRow = ["spot": id, "fetchedAt": fetchedAt.formatted(.iso8601)]
    return ByteBuffer(string: event("forecast", try ReportJSON.text(row)))
  }

  /// Returns the event `reset`, after which a client must read all spots again, and the revision from which it then resumes.
  static func reset(at revision: Revision) -> ByteBuffer { ByteBuffer(string: event("reset", id: revision, "{}")) }

  private static func event(_ name: String, id: Revision? = nil, _ data: String) -> String {
    // An event without an id leaves the last id of the browser as it is, so a forecast moves no client along.
    (id.map { "id: \($0)\n" } ?? "") + "event: \(name)\ndata: \(data)\n\n"
  }
}
