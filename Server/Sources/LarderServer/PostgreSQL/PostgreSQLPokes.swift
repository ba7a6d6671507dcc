internal import Logging

/// The signs between server processes over NOTIFY and LISTEN, on direct connections.
final class PostgreSQLPokes: HeadPokes {
  /// The name under which processes tell each other.
  static let channel = "larder"

  private let teller: PostgreSQLTeller
  private let listener: PostgreSQLListener

  init(_ address: PostgreSQLAddress, _ options: PostgreSQLOptions, logger: Logger) {
    var direct = options
    (direct.usesPooler, direct.trustsFailover) = (false, true)
    let place = PostgreSQLOpening(address: address, options: direct)
    (teller, listener) = (PostgreSQLTeller(place, logger), PostgreSQLListener(place, logger))
  }

  func tell(_ head: Int, of scope: String) { teller.tell(head, of: scope) }
  func listen(_ heard: @escaping @Sendable (Int, String) -> Void) { listener.start(heard) }
  func stopListening() { listener.stop() }

  func close() {
    listener.stop()
    teller.close()
    listener.wait()
  }

  /// Returns the text of a sign.
  static func text(_ head: Int, of scope: String) -> String { "\(scope):\(head)" }

  /// Returns what a sign says; `nil` for a text of somebody else.
  static func sign(_ text: String) -> (head: Int, scope: String)? {
    guard let colon = text.lastIndex(of: ":"), let head = Int(text[text.index(after: colon)...]) else { return nil }
    return (head, String(text[..<colon]))
  }
}

/// The address and the options of a connection.
struct PostgreSQLOpening: Sendable {
  let address: PostgreSQLAddress
  let options: PostgreSQLOptions

  func connect() throws(StoreError) -> PostgreSQLConnection { try PostgreSQLConnection.open(address, options) }
}

extension StoreError {
  /// Whether the engine does not know the words: those of another make have no NOTIFY and no LISTEN.
  var isUnknownToEngine: Bool {
    guard case .database(let code, _) = self else { return false }
    return code.hasPrefix("42") || code == "0A000"
  }
}
