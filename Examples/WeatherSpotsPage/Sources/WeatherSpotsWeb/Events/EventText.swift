import Foundation
import Larder
import NIOCore
import WeatherSpotsKit

/// Events as they are in a stream (HTML, server-sent events).
enum EventText {
  /// The beginning of a stream: a client sees at once that it is open, and asks again a second after it has ended.
  static let start = ByteBuffer(string: "retry: 1000\n\n")
  /// A sign of life.
  static let beat = ByteBuffer(string: ":\n\n")

  /// Returns the event of changed spots; its id is the revision from which a client goes on.
  static func changes(_ set: ChangeSet<Spot>, _ rows: RowCache) throws -> ByteBuffer {
    let changes = try set.changes.compactMap { change -> String? in
      // One that this version cannot read is there; what it is, nobody can be told.
      guard let id = change.id, change.error == nil else { return nil }
      let spot = try change.new.map { try rows.text(of: $0, at: change.revision) }
      return "{\"id\":\(try ReportJSON.text(id)),\"spot\":\(spot ?? "null")}"
    }
    return ByteBuffer(
      string: event("spots", id: set.revision, "{\"changes\":[\(changes.joined(separator: ","))],\"revision\":\(set.revision)}"))
  }

  /// Returns the event of a newer forecast, or of one that has become old.
  static func forecast(of id: String, fetchedAt: Date) throws -> ByteBuffer {
    let row: JSONRow = ["spot": id, "fetchedAt": fetchedAt.formatted(.iso8601)]
    return ByteBuffer(string: event("forecast", try ReportJSON.text(row)))
  }

  /// Returns the event of a client that is too far behind: it is to read all spots again, and goes on from a revision.
  static func reset(at revision: Revision) -> ByteBuffer { ByteBuffer(string: event("reset", id: revision, "{}")) }

  private static func event(_ name: String, id: Revision? = nil, _ data: String) -> String {
    (id.map { "id: \($0)\n" } ?? "") + "event: \(name)\ndata: \(data)\n\n"
  }
}
