internal import Foundation
@_spi(Inspection) internal import Larder

/// The events of a scope while they come: text of the form `text/event-stream`, in pieces that end anywhere.
struct EventStream {
  private var line = Data()
  private var data = ""
  private var isTooLong = false

  /// The longest line that is looked at; no event of a server is longer.
  private static let lineLimit = 4_096

  /// Returns the heads that a piece of the stream completes.
  mutating func heads(in piece: Data) -> [Int] {
    var heads: [Int] = []
    for byte in piece {
      switch byte {
      case UInt8(ascii: "\n"):
        if let head = endLine() { heads.append(head) }
      case UInt8(ascii: "\r"): break
      default: if line.count < Self.lineLimit { line.append(byte) } else { isTooLong = true }
      }
    }
    return heads
  }

  /// - Returns: The head of the event that the line has ended: an empty one does.
  private mutating func endLine() -> Int? {
    defer { (line, isTooLong) = (Data(), false) }
    guard line.isEmpty else {
      let text = String(decoding: line, as: UTF8.self)
      if !isTooLong, data.utf8.count < Self.lineLimit, text.hasPrefix("data:") { data += text.dropFirst(5) }
      return nil
    }
    defer { data = "" }
    guard !data.isEmpty else { return nil }
    do throws(RepositoryError) { return try JSONValue(json: Data(data.utf8))["head"]?.intValue } catch { return nil }
  }
}
