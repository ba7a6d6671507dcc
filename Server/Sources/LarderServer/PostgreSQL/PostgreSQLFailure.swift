internal import CPostgreSQL

/// Failures of statements, with messages that contain no value.
enum PostgreSQLFailure {
  /// Classes of SQLSTATE whose primary message names only tables, settings and the like.
  ///
  /// The messages of other classes, and the details of all, may quote values.
  private static let told: Set<Substring> = ["08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "XX"]

  /// Returns the failure that a result reports.
  ///
  /// - Parameter isFirst: Whether the result is the first one of its statement.
  static func of(_ result: OpaquePointer, _ connection: OpaquePointer, isFirst: Bool) -> StoreError {
    guard let state = larder_server_sqlstate(result).map({ String(cString: $0) }) else { return lost(connection, hadResult: !isFirst) }
    let primary = larder_server_primary(result).map { String(cString: $0) } ?? ""
    let advice = ["42P05", "26000"].contains(state) ? " (is there a pooler? then use --pooler)" : ""
    return .database(code: state, message: (told.contains(state.prefix(2)) ? primary : "a statement failed") + advice)
  }

  /// Returns the failure of a lost connection, with the server's last message if it announced the end.
  ///
  /// - Parameter hadResult: Whether the statement had a result, whose error may stand before the last message.
  static func lost(_ connection: OpaquePointer, hadResult: Bool = false) -> StoreError {
    let message = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    return .database(code: "08006", message: lastWords(message, hadResult: hadResult))
  }

  /// Returns the line of a connection's message that says why it is lost.
  ///
  /// An error of the statement before may be in the message. It may quote values, in the language of the database.
  static func lastWords(_ message: String, hadResult: Bool) -> String {
    let line = message.split(whereSeparator: \.isNewline).first { !hadResult || $0.hasPrefix("FATAL") }
    return line.map(String.init) ?? "the connection to the database is lost"
  }
}

extension StoreError {
  /// Whether a transaction with this failure may succeed in another run: it lost against another one, or its connection was cut.
  var isTransient: Bool {
    guard case .database(let code, _) = self else { return false }
    // Serialization, deadlock, unknown completion, four ends of a session by the server, idle transaction, read-only server.
    return ["40001", "40P01", "40003", "57P01", "57P02", "57P03", "57P05", "25P03", "25006"].contains(code) || code.hasPrefix("08")
  }

  /// Whether the connection cannot be used after this failure.
  var endsConnection: Bool {
    guard case .database(let code, _) = self else { return false }
    // 25006 means that the server has become a standby, and only a new connection finds the primary.
    return code.hasPrefix("08") || code.hasPrefix("57P") || ["25P03", "25006"].contains(code)
  }
}
