// Import/ reads what other programs have written, as values with a key.
// Invariant: a source is read whole and checked before anything is written. Called by `RecordImport`.

internal import Foundation
@_spi(Inspection) internal import Larder

/// A value of another program's file, with its place there.
struct ImportedRecord {
  /// The value: an object.
  let value: JSONValue
  /// The path of the file.
  let file: String
  /// The line at which it begins, counted from 1; `nil` where a file has one value.
  let line: Int?

  /// The place in words.
  var place: String { line.map { "\(file), line \($0)" } ?? file }

  /// Returns the key that a member holds, as Larder writes the keys of its type: texts as they are, integers as digits.
  /// - Throws: `.invalidKey` where there is none.
  func key(in member: String) throws(RepositoryError) -> RecordKey {
    func invalid(_ found: String) -> RepositoryError {
      RepositoryError(
        .invalidKey, "\(line.map { "line \($0): " } ?? "")expected a text or an integer as `\(member)`, found \(found)", file: file)
    }
    guard let object = value.objectValue else { throw invalid("a value that is no object") }
    guard let id: JSONValue = object[member], !id.isNull else { throw invalid("no such member") }
    if let text = id.stringValue { return RecordKey(text) }
    guard let number = id.numberValue, number.exactly(Int64.self) != nil || number.exactly(UInt64.self) != nil else {
      throw invalid("another value")
    }
    return RecordKey(number.text)
  }
}

/// The kinds of sources that can be imported.
package enum ImportKind: String, CaseIterable, Sendable {
  /// A JSON file that holds an array of objects.
  case array
  /// A file of comma-separated values with a header line.
  case csv
  /// A store of Bodega or Boutique: a directory with a file for each object, or a SQLite database.
  case bodega
}
