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

  /// Returns the value that a member holds.
  /// - Throws: `.invalidKey` where it is no text and no integer.
  func id(in member: String) throws(RepositoryError) -> JSONValue {
    let expected = "expected a text or an integer as `\(member)`, found"
    guard let object = value.objectValue else { throw invalidKey("\(expected) a value that is no object") }
    guard let id: JSONValue = object[member], !id.isNull else { throw invalidKey("\(expected) no such member") }
    guard IDType.text.key(of: id) != nil || IDType.integer.key(of: id) != nil else { throw invalidKey("\(expected) another value") }
    return id
  }

  /// Returns the key under which a repository with ids of a type finds the record.
  /// - Throws: `.invalidKey` where the member holds no id of that type.
  func key(in member: String, as type: IDType) throws(RepositoryError) -> RecordKey {
    guard let key = type.key(of: try id(in: member)) else {
      throw invalidKey("expected \(type.description) as `\(member)`, found another value: choose another --id-type")
    }
    return key
  }

  /// Returns the error for an id, with its line.
  func invalidKey(_ message: String) -> RepositoryError {
    RepositoryError(.invalidKey, "\(line.map { "line \($0): " } ?? "")\(message)", file: file)
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
