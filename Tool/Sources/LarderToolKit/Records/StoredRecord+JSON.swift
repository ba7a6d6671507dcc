// Records/ shows single records: as lines of JSON, as text on a terminal, and in tables.
// Invariant: a value's bytes are written as they are stored, and no control character reaches a terminal. Called by the other rooms.

package import Foundation
@_spi(Inspection) package import Larder

extension StoredRecord {
  /// The value; `nil` for a tombstone, and for bytes that are not JSON as Larder reads it.
  package var json: JSONValue? {
    guard let value else { return nil }
    do throws(RepositoryError) { return try JSONValue(json: value) } catch { return nil }
  }

  /// The record as one line of JSON, as a dump has it.
  ///
  /// The value stands in it byte for byte; one that is not JSON stands as `bytes`, in base 64.
  package var line: Data {
    var text = #"{"collection":\#(JSONValue(collection).text)"#
    if value == nil { text += #","deleted":true"# }
    text += #","key":\#(JSONValue(key.text).text),"revision":\#(revision.number)"#
    var line = Data(text.utf8)
    if let value {
      if json != nil {
        line += Data(#","value":"#.utf8) + value
      } else {
        line += Data(#","bytes":"\#(value.base64EncodedString())""#.utf8)
      }
    }
    line += Data(",\"version\":\(schemaVersion)}\n".utf8)
    return line
  }
}
