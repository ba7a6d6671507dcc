internal import CPostgreSQL
internal import Foundation

/// Address of a PostgreSQL database: a URI or a connection string of libpq.
///
/// libpq adds missing parts from the PG… variables, password files and service files.
struct PostgreSQLAddress: Sendable {
  private let text: String
  private let password: String
  /// Whether the address sets a transaction isolation of its own, which is kept then.
  let namesIsolation: Bool

  /// - Throws: `.unusable` for a text that libpq cannot read. The error does not contain the text, a part of which may be a password.
  init(_ text: String) throws(StoreError) {
    var message: UnsafeMutablePointer<CChar>?
    let options = PQconninfoParse(text, &message)
    PQfreemem(message)
    guard let options else { throw Self.refusal("something that libpq cannot read") }
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var next = options
    while let keyword = next.pointee.keyword {
      if let value = next.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      next += 1
    }
    // libpq takes the part of a password after an unescaped "@", ":" or "/" for a host or a port, which then appear in messages.
    guard values["port"]?.allSatisfy({ $0.isNumber || $0 == "," }) ?? true else { throw Self.refusal("a port that is no number") }
    guard !(values["host"]?.dropFirst().contains("@") ?? false) else { throw Self.refusal("a host with '@' in its name") }
    let environment = ProcessInfo.processInfo.environment
    (self.text, password) = (text, values["password"] ?? environment["PGPASSWORD"] ?? "")
    namesIsolation = values["options"]?.contains("default_transaction_isolation") ?? false
  }

  private static func refusal(_ found: String) -> StoreError {
    .unusable(
      ServerError(
        expected: "a URI of PostgreSQL, such as postgresql://user@host:5432/database", found: found,
        advice: "write '%40' for '@', '%3A' for ':' and '%2F' for '/' within a password, or leave it to PGPASSFILE"))
  }

  /// Returns the keywords of a connection: defaults that the address may change, the address, and keywords that it may not change.
  func keywords(_ options: PostgreSQLOptions) -> [(String, String)] {
    [
      // libpq expands `dbname` as the address. Later keywords take the place of earlier ones.
      ("application_name", "larder-server"), ("connect_timeout", "\(options.connectSeconds)"),
      ("keepalives", "1"), ("keepalives_idle", "\(options.networkSeconds)"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
      // In milliseconds, unlike the other times.
      ("tcp_user_timeout", "\(options.networkSeconds * 1_000)"),
      // Selects the primary among several hosts. Always set, because only libpq reads service files, which may name hosts, too.
      ("target_session_attrs", "read-write"), ("dbname", text), ("client_encoding", "UTF8"),
    ]
  }

  /// Returns a message in one line and without the password.
  func cleaned(_ message: String) -> String {
    let line = message.split(whereSeparator: \.isNewline).joined(separator: "; ")
    return password.isEmpty ? line : line.replacingOccurrences(of: password, with: "***")
  }
}
