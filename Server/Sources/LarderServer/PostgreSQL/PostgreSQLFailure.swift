internal import CPostgreSQL

/// The failures of statements, in words that hold no value.
enum PostgreSQLFailure {
  /// The classes of SQLSTATE whose first message names tables, settings and the like.
  ///
  /// That of others may quote values, and so may the details of all.
  private static let told: Set<Substring> = ["08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "XX"]

  /// Returns the failure that a result stands for.
  ///
  /// - Parameter isFirst: Whether the statement has had no result before this one.
  static func of(_ result: OpaquePointer, _ connection: OpaquePointer, isFirst: Bool) -> StoreError {
    guard let state = larder_server_sqlstate(result).map({ String(cString: $0) }) else { return lost(connection, hadResult: !isFirst) }
    let primary = larder_server_primary(result).map { String(cString: $0) } ?? ""
    let advice = ["42P05", "26000"].contains(state) ? " (is there a pooler? then use --pooler)" : ""
    return .database(code: state, message: (told.contains(state.prefix(2)) ? primary : "a statement failed") + advice)
  }

  /// Returns the failure of a connection that is gone; the server's last words may be those of an ending.
  ///
  /// - Parameter hadResult: Whether a statement has had a result, whose words may stand before those of the ending.
  static func lost(_ connection: OpaquePointer, hadResult: Bool = false) -> StoreError {
    let message = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    return .database(code: "08006", message: lastWords(message, hadResult: hadResult))
  }

  /// Returns the line of a message that tells why a connection is gone.
  ///
  /// An error of a statement that came just before is of that statement, and may quote values, in the language of the database.
  static func lastWords(_ message: String, hadResult: Bool) -> String {
    let line = message.split(whereSeparator: \.isNewline).first { !hadResult || $0.hasPrefix("FATAL") }
    return line.map(String.init) ?? "the connection to the database is lost"
  }
}

extension StoreError {
  /// Whether a transaction that failed so may succeed when it is run again: it lost against another one, or its connection was cut.
  var isTransient: Bool {
    guard case .database(let code, _) = self else { return false }
    return ["40001", "40P01", "40003", "57P01", "57P02", "57P03", "57P05", "25P03", "25006"].contains(code) || code.hasPrefix("08")
  }

  /// Whether the connection is of no more use.
  var endsConnection: Bool {
    guard case .database(let code, _) = self else { return false }
    return code.hasPrefix("08") || code.hasPrefix("57P") || ["25P03", "25006"].contains(code)
  }
}
