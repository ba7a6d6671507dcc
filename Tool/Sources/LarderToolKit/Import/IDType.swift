internal import Foundation
@_spi(Inspection) internal import Larder

/// A type of ids, as the app that reads the records declares it.
///
/// Each type has one key for an id. A record under another key is there, and no repository of that type finds it.
package enum IDType: String, CaseIterable, Sendable {
  /// `String`, or an enumeration over it: the key is the text.
  case text
  /// An integer of any width: the key is the digits.
  case integer
  /// `UUID`: the key is the text in upper case.
  case uuid

  /// Returns the key of an id of this type; `nil` where the value is of another type.
  func key(of id: JSONValue) -> RecordKey? {
    switch self {
    case .text: id.stringValue.map { RecordKey($0) }
    case .integer: Self.integer(id).map { RecordKey($0.description) }
    case .uuid: id.stringValue.flatMap { UUID(uuidString: $0) }.map { RecordKey($0.uuidString) }
    }
  }

  /// Returns an integer that some type of Swift's up to 64 bits holds.
  private static func integer(_ id: JSONValue) -> Int128? {
    guard let number = id.numberValue?.exactly(Int128.self), number >= Int128(Int64.min), number <= Int128(UInt64.max) else { return nil }
    return number
  }

  /// Returns the declaration with which an app reads all ids of a source.
  /// - Throws: `.invalidKey` with the line of an integer for which no type of 64 bits holds all of them.
  func declaration(of member: String, in records: [ImportedRecord]) throws(RepositoryError) -> String {
    let name = TerminalText.escaped(member)
    switch self {
    case .text: return "`let \(name): String`"
    case .uuid: return "`let \(name): UUID`"
    case .integer:
      let isUnsigned = try Self.needsUnsigned(records, member)
      return isUnsigned ? "`let \(name): UInt64`" : "`let \(name): Int`, or another integer that holds all of them"
    }
  }

  /// Returns whether only `UInt64` holds all integers of a source.
  private static func needsUnsigned(_ records: [ImportedRecord], _ member: String) throws(RepositoryError) -> Bool {
    var negative: ImportedRecord?
    var large: ImportedRecord?
    for record in records {
      guard let number = integer(try record.id(in: member)) else { continue }
      if number < 0 { negative = negative ?? record } else if number > Int128(Int64.max) { large = large ?? record }
      guard let negative, let large else { continue }
      throw record.invalidKey(
        "expected integers as `\(member)` that one type of 64 bits holds, found one below zero (\(negative.place)) and one above "
          + "\(Int64.max) (\(large.place)): make texts of all ids")
    }
    return large != nil
  }

  /// The values that it takes, for errors.
  var description: String {
    switch self {
    case .text: "a text"
    case .integer: "an integer"
    case .uuid: "a text that is a UUID"
    }
  }

  // MARK: Detection

  /// Finds the type of all ids of a source; a source without ids has texts.
  /// - Throws: `.invalidKey` with the line of an id of another type than the first one, or of a UUID in lower case, whose key depends on
  ///   the app's type.
  static func detected(in records: [ImportedRecord], _ member: String) throws(RepositoryError) -> IDType {
    guard let first = records.first else { return .text }
    let type: IDType = text.key(of: try first.id(in: member)) == nil ? .integer : .text
    var lowerCase: ImportedRecord?
    var areUUIDs = type == .text
    for record in records {
      let id = try record.id(in: member)
      guard let key = type.key(of: id) else {
        let other: IDType = type == .text ? .integer : .text
        throw record.invalidKey(
          "expected \(type.description) as `\(member)`, the type of the first record, found \(other.description): give all ids one type")
      }
      guard areUUIDs else { continue }
      let canonical = uuid.key(of: id)
      areUUIDs = canonical != nil
      if lowerCase == nil, canonical != key { lowerCase = record }
    }
    guard areUUIDs else { return type }
    if let lowerCase {
      throw lowerCase.invalidKey(
        "expected UUIDs in upper case as `\(member)`, found one in lower case, whose key depends on the type of the app: choose "
          + "--id-type uuid for `let \(member): UUID`, or --id-type text for `let \(member): String`")
    }
    return .uuid
  }
}
