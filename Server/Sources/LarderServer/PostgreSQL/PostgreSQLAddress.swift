internal import CPostgreSQL
internal import Foundation

/// A place of a database: a URI or a connection string of libpq, which also reads the PG… variables, password files and service files.
struct PostgreSQLAddress: Sendable {
  private let text: String
  private let password: String
  /// Whether the address itself names an isolation, which is kept then.
  let namesIsolation: Bool

  /// - Throws: `.unusable` for a text that libpq cannot read; the error does not have it, since a part of it may be a password.
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
    // What follows an unescaped "@", ":" or "/" of a password would be taken for a host or a port, and be in messages then.
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

  /// Returns the keywords of a connection: what the address may change, the address, and what it may not.
  func keywords(_ options: PostgreSQLOptions) -> [(String, String)] {
    [
      ("application_name", "larder-server"), ("connect_timeout", "\(options.connectSeconds)"),
      ("keepalives", "1"), ("keepalives_idle", "\(options.networkSeconds)"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "\(options.networkSeconds * 1_000)"),
      // Of a primary and its standbys, the one that takes writes; how many there are, a service file may say, which only libpq reads.
      ("target_session_attrs", "read-write"), ("dbname", text), ("client_encoding", "UTF8"),
    ]
  }

  /// Returns a message without the password, in one line.
  func cleaned(_ message: String) -> String {
    let line = message.split(whereSeparator: \.isNewline).joined(separator: "; ")
    return password.isEmpty ? line : line.replacingOccurrences(of: password, with: "***")
  }
}
