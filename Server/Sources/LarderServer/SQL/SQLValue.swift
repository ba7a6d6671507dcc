public import Foundation

// SQL/ is the interface between the store and databases. Invariant: a connection is used by one thread, which made it.
// Called by Store, implemented by SQLite and PostgreSQL.

/// Value of a statement's parameter or of a row's column.
public enum SQLValue: Sendable, Hashable {
  /// NULL, the missing value.
  case null
  /// A 64-bit integer.
  case integer(Int)
  /// A text.
  case text(String)
  /// A text in UTF-8 that is stored without a conversion.
  case utf8(Data)
}

/// Row of a statement's result.
public struct SQLRow: Sendable {
  /// Values in the order of the columns.
  public let values: [SQLValue]

  /// Creates a row.
  public init(_ values: [SQLValue]) { self.values = values }

  /// Returns the integer in a column, or 0 for NULL.
  func integer(_ column: Int) -> Int {
    if case .integer(let number) = values[column] { number } else { 0 }
  }

  /// Returns the integer in a column, or `nil` for NULL.
  func optionalInteger(_ column: Int) -> Int? { values[column] == .null ? nil : integer(column) }

  /// Returns the text in a column, or an empty text for NULL.
  func text(_ column: Int) -> String {
    switch values[column] {
    case .text(let text): text
    // Bytes that are no UTF-8 become U+FFFD, so that one damaged text does not fail a whole page.
    case .utf8(let bytes): String(decoding: bytes, as: UTF8.self)
    case .integer(let number): String(number)
    case .null: ""
    }
  }

  /// Returns the UTF-8 bytes of the text in a column, or `nil` for NULL.
  func utf8(_ column: Int) -> Data? {
    switch values[column] {
    case .text(let text): Data(text.utf8)
    case .utf8(let bytes): bytes
    case .integer, .null: nil
    }
  }
}
