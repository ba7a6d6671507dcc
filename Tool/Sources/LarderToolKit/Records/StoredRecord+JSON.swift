// Records/ formats single records: as lines of JSON, as text on a terminal, and in tables.
// Invariant: stored bytes reach files and pipes unchanged. No control character reaches a terminal. Called by the other folders.

package import Foundation
@_spi(Inspection) package import Larder

extension StoredRecord {
  /// The value as JSON.
  ///
  /// `nil` for a tombstone, and for bytes that are not JSON.
  package var json: JSONValue? {
    guard let value else { return nil }
    do throws(RepositoryError) { return try JSONValue(json: value) } catch { return nil }
  }

  /// The record as one line of a dump.
  ///
  /// A JSON value is copied byte for byte. Other bytes are written as `bytes`, in base 64.
  package var line: Data {
    var text = #"{"collection":\#(JSONValue(collection).text)"#
    if value == nil { text += #","deleted":true"# }
    text += #","key":\#(JSONValue(key.text).text),"revision":\#(revision.number)"#
    var line = Data(text.utf8)
    if let value {
      if json != nil {
        // Writing the value anew could change its bytes, and with them the record's checksum.
        line += Data(#","value":"#.utf8) + value
      } else {
        line += Data(#","bytes":"\#(value.base64EncodedString())""#.utf8)
      }
    }
    line += Data(",\"version\":\(schemaVersion)}\n".utf8)
    return line
  }
}
