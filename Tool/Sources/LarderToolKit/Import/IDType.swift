internal import Foundation
@_spi(Inspection) internal import Larder

/// Type of the ids, as the app that reads the records declares it.
///
/// Each type derives one key from an id. A repository of that type does not find a record that is stored under another key.
package enum IDType: String, CaseIterable, Sendable {
  /// `String`, or an enumeration over it. The key is the text itself.
  case text
  /// An integer of any width. The key is its decimal digits.
  case integer
  /// `UUID`. The key is the text in upper case.
  case uuid

  /// Returns the key of an id of this type, or `nil` if the value has another type.
  func key(of id: JSONValue) -> RecordKey? {
    switch self {
    case .text: id.stringValue.map { RecordKey($0) }
    case .integer: Self.integer(id).map { RecordKey($0.description) }
    case .uuid: id.stringValue.flatMap { UUID(uuidString: $0) }.map { RecordKey($0.uuidString) }
    }
  }

  /// Returns the value as an integer if a Swift integer type of at most 64 bits holds it.
  private static func integer(_ id: JSONValue) -> Int128? {
    // The range of Int64 and UInt64 together: which of the two the app declares is decided over all ids, in `declaration`.
    guard let number = id.numberValue?.exactly(Int128.self), number >= Int128(Int64.min), number <= Int128(UInt64.max) else { return nil }
    return number
  }

  /// Returns the Swift declaration of the id member with which an app finds all imported records.
  /// - Throws: `.invalidKey` with the line if one integer is negative and another above `Int64.max`, since no type holds both.
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

  /// Returns true if one integer of the source is above `Int64.max`, so that only `UInt64` holds it.
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

  /// Description of the values of this type, for errors.
  var description: String {
    switch self {
    case .text: "a text"
    case .integer: "an integer"
    case .uuid: "a text that is a UUID"
    }
  }

  // MARK: Detection

  /// Determines the type of all ids of a source.
  ///
  /// A source without records gets `.text`.
  /// - Throws: `.invalidKey` with the line of an id whose type differs from that of the first one, or of a UUID in lower case if all ids
  ///   are UUIDs, because its key depends on the app's type.
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
      // One text that is no UUID makes all ids texts. Lower case is then no problem, so it is only noted here.
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
