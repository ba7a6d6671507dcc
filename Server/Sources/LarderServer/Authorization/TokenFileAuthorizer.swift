internal import Dispatch
internal import Foundation
public import LarderWire
public import Logging
internal import Synchronization

/// Authorizer for tokens in a file, which is read again when it changes.
///
/// The file has one line for each token and pattern of scopes. `larder-server token add` writes it.
public final class TokenFileAuthorizer: Authorizer {
  private struct State: Sendable {
    var table: TokenTable
    var version: FileVersion
    var looked = ContinuousClock.now
  }

  private let path: String
  private let logger: Logger
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "larder-tokens")

  /// Creates an authorizer and reads the file.
  ///
  /// - Throws: ``ServerError`` for a file that is missing, has a malformed line, or gives a token to two identities.
  public init(path: String, logger: Logger) throws(ServerError) {
    (self.path, self.logger) = (path, logger)
    // Taken before the read, so that a file that changes in between is read again.
    let version = FileVersion(path)
    state = Mutex(State(table: try Self.readChecked(path), version: version))
  }

  /// Returns the table in a token file that a server may use.
  private static func readChecked(_ path: String) throws(ServerError) -> TokenTable {
    let table = try read(path)
    // Not in `read`: a file with such a token can still be listed, and the token be revoked.
    try table.checkIdentities()
    return table
  }

  /// Returns the table in a token file.
  ///
  /// - Throws: ``ServerError``.
  public static func read(_ path: String) throws(ServerError) -> TokenTable {
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw ServerError(
        expected: "a token file at \(path)", found: "none that can be read",
        advice: "make one with 'larder-server token add --tokens \(path) …'")
    }
    return try TokenTable(text)
  }

  /// Returns the identity of a token.
  ///
  /// Looks for a change of the file at most once a second for known tokens, and each time for an unknown one.
  public func identity(of token: String) async throws(SyncProblem) -> Identity {
    let (known, isOld) = state.withLock { ($0.table.identity(ofToken: token), $0.looked + .seconds(1) < .now) }
    if let known, !isOld { return known }
    // An unknown token may have been added a moment ago, and a known one revoked.
    await reload()
    guard let identity = state.withLock({ $0.table.identity(ofToken: token) }) else { throw .unauthorized }
    return identity
  }

  /// Reads the file again if it has changed.
  ///
  /// A malformed file changes nothing and is logged.
  func reload() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      // Reading a file blocks, which no thread of Swift's tasks may do.
      queue.async { [self] in
        reloadNow()
        continuation.resume()
      }
    }
  }

  private func reloadNow() {
    let version = FileVersion(path)
    let isNew = state.withLock { state in
      state.looked = .now
      return version != state.version
    }
    guard isNew else { return }
    do throws(ServerError) {
      let table = try Self.readChecked(path)
      state.withLock { ($0.table, $0.version) = (table, version) }
      logger.info("the token file was read again", metadata: ["lines": "\(table.lines.count)"])
    } catch {
      // Logged once for each change, and not for each request that follows.
      state.withLock { $0.version = version }
      logger.error("the token file was not taken", metadata: ["error": "\(error)"])
    }
  }
}
