internal import Logging

/// Announcements of commits between server processes over NOTIFY and LISTEN, on direct connections.
final class PostgreSQLPokes: HeadPokes {
  /// Name of the channel of NOTIFY.
  static let channel = "larder"

  private let teller: PostgreSQLTeller
  private let listener: PostgreSQLListener

  init(_ address: PostgreSQLAddress, _ options: PostgreSQLOptions, logger: Logger) {
    var direct = options
    // These connections read no data, so they need no timeline.
    (direct.usesPooler, direct.trustsFailover) = (false, true)
    let place = PostgreSQLOpening(address: address, options: direct)
    (teller, listener) = (PostgreSQLTeller(place, logger), PostgreSQLListener(place, logger))
  }

  func tell(_ head: Int, of scope: String) { teller.tell(head, of: scope) }
  func listen(_ heard: @escaping @Sendable (Int, String) -> Void) { listener.start(heard) }
  func stopListening() { listener.stop() }

  func close() {
    // Stopped first, so that the listener ends while this waits for the teller.
    listener.stop()
    teller.close()
    listener.wait()
  }

  /// Returns the payload of an announcement.
  static func text(_ head: Int, of scope: String) -> String { "\(scope):\(head)" }

  /// Parses the payload of an announcement, and returns `nil` for one of another program.
  static func sign(_ text: String) -> (head: Int, scope: String)? {
    // The last colon, because the name of a scope may contain others.
    guard let colon = text.lastIndex(of: ":"), let head = Int(text[text.index(after: colon)...]) else { return nil }
    return (head, String(text[..<colon]))
  }
}

/// Address and options of a connection.
struct PostgreSQLOpening: Sendable {
  let address: PostgreSQLAddress
  let options: PostgreSQLOptions

  func connect() throws(StoreError) -> PostgreSQLConnection { try PostgreSQLConnection.open(address, options) }
}

extension StoreError {
  /// Whether the engine lacks NOTIFY and LISTEN, as engines other than PostgreSQL may.
  var isUnknownToEngine: Bool {
    guard case .database(let code, _) = self else { return false }
    return code.hasPrefix("42") || code == "0A000"
  }
}
