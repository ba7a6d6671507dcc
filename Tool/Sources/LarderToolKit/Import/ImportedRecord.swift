// Import/ reads data of other programs as JSON values with keys.
// Invariant: a source is read whole and checked before anything is written. Called by `RecordImport`.

internal import Foundation
@_spi(Inspection) internal import Larder

/// Value that was read from another program's file, with its place there for errors.
struct ImportedRecord {
  /// The value as JSON.
  ///
  /// `id(in:)` refuses everything but an object.
  let value: JSONValue
  /// Path of the source file.
  let file: String
  /// Line at which the value begins, or its row in a database, counted from 1.
  ///
  /// `nil` if the file holds one value.
  let line: Int?

  /// File and line of the value, for messages.
  var place: String { line.map { "\(file), line \($0)" } ?? file }

  /// Returns the id that a member of the value holds.
  /// - Throws: `.invalidKey` if the member is neither a text nor an integer.
  func id(in member: String) throws(RepositoryError) -> JSONValue {
    let expected = "expected a text or an integer as `\(member)`, found"
    guard let object = value.objectValue else { throw invalidKey("\(expected) a value that is no object") }
    // Null is treated as a missing member, because it has no key.
    guard let id: JSONValue = object[member], !id.isNull else { throw invalidKey("\(expected) no such member") }
    guard IDType.text.key(of: id) != nil || IDType.integer.key(of: id) != nil else { throw invalidKey("\(expected) another value") }
    return id
  }

  /// Returns the key under which a repository with ids of `type` finds the record.
  /// - Throws: `.invalidKey` if the member holds no id of that type.
  func key(in member: String, as type: IDType) throws(RepositoryError) -> RecordKey {
    guard let key = type.key(of: try id(in: member)) else {
      throw invalidKey("expected \(type.description) as `\(member)`, found another value: choose another --id-type")
    }
    return key
  }

  /// Returns the error for an unusable id, with file and line.
  func invalidKey(_ message: String) -> RepositoryError {
    RepositoryError(.invalidKey, "\(line.map { "line \($0): " } ?? "")\(message)", file: file)
  }
}

/// Formats that the command `import` reads.
package enum ImportKind: String, CaseIterable, Sendable {
  /// A JSON file that holds an array of objects.
  case array
  /// A file of comma-separated values with a header line.
  case csv
  /// A store of Bodega or Boutique, which is a directory with a file for each object, or a SQLite database.
  case bodega
}
