internal import Foundation
internal import Logging
internal import Synchronization

/// Thread that announces commits to other processes (NOTIFY).
///
/// NOTIFY takes a lock of the whole database until its transaction has ended. Within pushes, it would make their commits wait for one
/// another.
final class PostgreSQLTeller: Sendable {
  private struct State: Sendable {
    var heads: [String: Int] = [:]
    var isClosed = false
  }

  /// Time in seconds within which commits are gathered into one announcement.
  private static let gathering = 0.02
  /// Maximum number of announcements in one statement.
  private static let most = 64

  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)
  private let ended = DispatchGroup()
  private let opening: PostgreSQLOpening
  private let logger: Logger

  init(_ opening: PostgreSQLOpening, _ logger: Logger) {
    (self.opening, self.logger) = (opening, logger)
    ended.enter()
    let thread = Thread { [self] in
      work()
      ended.leave()
    }
    thread.name = "larder-tell"
    thread.start()
  }

  func tell(_ head: Int, of scope: String) {
    let isFirst = state.withLock { state in
      if state.isClosed { return false }
      let isFirst = state.heads.isEmpty
      // Commits can be announced in the wrong order, and only the newest counts.
      state.heads[scope] = max(state.heads[scope] ?? 0, head)
      return isFirst
    }
    if isFirst { arrived.signal() }
  }

  /// Accepts no more commits, and blocks until the thread has ended, but for 2 seconds at most.
  ///
  /// A thread that waits for a hanging database ends by itself, after the time for a statement.
  func close() {
    state.withLock { $0.isClosed = true }
    arrived.signal()
    _ = ended.wait(timeout: .now() + 2)
  }

  private func work() {
    var connection: PostgreSQLConnection?
    while true {
      arrived.wait()
      Thread.sleep(forTimeInterval: Self.gathering)
      let (heads, isClosed) = state.withLock { state -> ([String: Int], Bool) in
        defer { state.heads = [:] }
        return (state.heads, state.isClosed)
      }
      do throws(StoreError) {
        // At the end, no new connection is made, because other servers find the commits by their own query.
        if !heads.isEmpty, !isClosed || connection?.isUsable == true { try send(heads, &connection) }
      } catch {
        logger.warning("other servers were not told about commits, and find them when they look", metadata: ["error": "\(error)"])
        connection = nil
        // An engine without NOTIFY leaves this thread without work.
        if error.isUnknownToEngine { state.withLock { $0.isClosed = true } }
      }
      if state.withLock({ $0.isClosed }) { return }
    }
  }

  private func send(_ heads: [String: Int], _ connection: inout PostgreSQLConnection?) throws(StoreError) {
    let open: PostgreSQLConnection
    if let connection, connection.isUsable {
      open = connection
    } else {
      open = try opening.connect()
      // An announcement that a crash loses costs nothing, and a sync of the disk would.
      try open.simple("SET synchronous_commit = off")
      connection = open
    }
    let signs = heads.map { SQLValue.text(PostgreSQLPokes.text($0.value, of: $0.key)) }
    for start in stride(from: 0, to: signs.count, by: Self.most) {
      let part = Array(signs[start..<min(start + Self.most, signs.count)])
      let places = Array(repeating: "(?)", count: part.count).joined(separator: ", ")
      try open.execute("SELECT pg_notify('\(PostgreSQLPokes.channel)', sign) FROM (VALUES \(places)) AS signs (sign)", part)
    }
  }
}
