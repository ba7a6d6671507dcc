public import Foundation

// SQL/ is the seam between the store and databases. Invariant: a connection is used by one thread, which made it.
// Called by Store; SQLite implements it.

/// A value that goes into a statement, or comes out of a row.
public enum SQLValue: Sendable, Hashable {
  /// No value.
  case null
  /// A number of 64 bits.
  case integer(Int)
  /// A text.
  case text(String)
  /// A text in UTF-8, which is stored as it is.
  case utf8(Data)
}

/// A row of an answer.
public struct SQLRow: Sendable {
  /// The values, in the order of the columns.
  public let values: [SQLValue]

  /// Makes a row.
  public init(_ values: [SQLValue]) { self.values = values }

  /// Returns the number of a column; 0 for NULL.
  func integer(_ column: Int) -> Int {
    if case .integer(let number) = values[column] { number } else { 0 }
  }

  /// Returns the number of a column; `nil` for NULL.
  func optionalInteger(_ column: Int) -> Int? { values[column] == .null ? nil : integer(column) }

  /// Returns the text of a column; an empty one for NULL.
  func text(_ column: Int) -> String {
    switch values[column] {
    case .text(let text): text
    case .utf8(let bytes): String(decoding: bytes, as: UTF8.self)
    case .integer(let number): String(number)
    case .null: ""
    }
  }

  /// Returns the bytes of a column's text; `nil` for NULL.
  func utf8(_ column: Int) -> Data? {
    switch values[column] {
    case .text(let text): Data(text.utf8)
    case .utf8(let bytes): bytes
    case .integer, .null: nil
    }
  }
}
