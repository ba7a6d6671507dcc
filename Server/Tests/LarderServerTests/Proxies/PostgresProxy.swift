import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A proxy between a server and PostgreSQL that knows the messages: it cuts a connection at the COMMIT of a transaction that writes, and puts other
/// statements in the place of some, for defects that the server does not have.
final class PostgresProxy: Sendable {
  /// The places at which a connection is cut.
  enum Cut: Sendable, CaseIterable {
    /// Before COMMIT reaches the database, which then ends the transaction without it.
    case before
    /// After the database has answered, before the answer reaches the server.
    case after
    /// As soon as COMMIT is sent: what becomes of it nobody knows.
    case atOnce
  }

  /// What is put in the place of a part of a statement.
  struct Rewrite: Sendable {
    var part: String
    var replacement: String
  }

  /// What happened.
  struct Counts: Sendable {
    var commits = 0
    var cuts: [Cut: Int] = [:]
    var rewritten: [String: Int] = [:]
    var cut: Int { cuts.values.reduce(0, +) }
  }

  private struct State: Sendable {
    var counts = Counts()
    var cutsLeft = 0
    var every = 0
    /// The text that a bound value of a transaction holds whose COMMIT may be cut; `nil` for any transaction.
    var part: String?
  }

  private let relay: LoopbackRelay
  private let rewrites: [Rewrite]
  private let state = Mutex(State())

  init(to target: Int, rewrites: [Rewrite] = []) throws {
    self.rewrites = rewrites
    relay = try LoopbackRelay(to: target)
    relay.start { [self] client, server in serve(Link(client: client, server: server)) }
  }

  var port: Int { relay.port }
  var counts: Counts { state.withLock { $0.counts } }

  /// Cuts a number of commits from now on, one of so many.
  /// - Parameter part: A text that a bound value of the transaction must hold; every transaction may be cut without it.
  func cut(_ number: Int, oneOf every: Int, binding part: String? = nil) {
    state.withLock { ($0.cutsLeft, $0.every, $0.part) = (number, every, part) }
  }

  /// Ends the proxy and all connections.
  func close() { relay.end() }

  private func serve(_ link: Link) {
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      link.passAnswers()
      ended.signal()
    }
    passRequests(link)
    link.cut()
    ended.wait()
  }

  private func passRequests(_ link: Link) {
    // The first messages have no type: a question for TLS or GSS, which is answered with no, then who connects.
    while let size = link.read(4), let rest = link.read(Link.number(size) - 4) {
      guard link.send(size + rest) else { return }
      if ![80_877_103, 80_877_104].contains(Link.number(Array(rest.prefix(4)))) { break }
    }
    var writes = false
    var values = Data()
    while let type = link.read(1), let size = link.read(4), var rest = link.read(Link.number(size) - 4) {
      if type == Array("Q".utf8) || type == Array("P".utf8) {
        let parts = rest.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        let sql = type == Array("Q".utf8) ? parts[0] : parts.dropFirst().first ?? ""
        if sql.hasPrefix("BEGIN") { (writes, values) = (!sql.contains("READ ONLY"), Data()) }
        if sql.uppercased() == "COMMIT", writes {
          guard commit(link, type + size + rest, binding: values) else { return }
          continue
        }
        rest = rewritten(rest)
      }
      if type == Array("B".utf8) { values += rest }
      guard link.send(type + Link.bytes(rest.count + 4) + rest) else { return }
    }
  }

  /// Returns false when the connection is cut.
  private func commit(_ link: Link, _ message: [UInt8], binding values: Data) -> Bool {
    let cut: Cut? = state.withLock { state in
      state.counts.commits += 1
      guard state.cutsLeft > 0, state.counts.commits % state.every == 0 else { return nil }
      if let part = state.part, values.range(of: Data(part.utf8)) == nil { return nil }
      let cut = Cut.allCases[state.cutsLeft % Cut.allCases.count]
      state.cutsLeft -= 1
      state.counts.cuts[cut, default: 0] += 1
      return cut
    }
    switch cut {
    case nil: return link.send(message)
    case .before: return false
    case .after:
      link.isMuted.withLock { $0 = true }
      return link.send(message)
    case .atOnce:
      _ = link.send(message)
      return false
    }
  }

  private func rewritten(_ message: [UInt8]) -> [UInt8] {
    var message = message
    for rewrite in rewrites {
      // Bytes and not texts: what follows the statement are numbers.
      guard let place = Data(message).range(of: Data(rewrite.part.utf8)) else { continue }
      message.replaceSubrange(place, with: Array(rewrite.replacement.utf8))
      state.withLock { $0.counts.rewritten[rewrite.part, default: 0] += 1 }
    }
    return message
  }
}

/// The two sockets of a connection.
private final class Link: Sendable {
  let client: Int32
  let server: Int32
  /// Whether the next answer cuts the connection in place of being passed on.
  let isMuted = Mutex(false)

  init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

  static func number(_ bytes: [UInt8]) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
  static func bytes(_ number: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }

  /// Returns so many bytes of the client; `nil` at the end.
  func read(_ count: Int) -> [UInt8]? {
    guard count > 0 else { return count == 0 ? [] : nil }
    var (bytes, filled) = ([UInt8](repeating: 0, count: count), 0)
    while filled < count {
      let found = bytes.withUnsafeMutableBytes { recv(client, $0.baseAddress?.advanced(by: filled), count - filled, 0) }
      guard found > 0 else { return nil }
      filled += found
    }
    return bytes
  }

  func send(_ bytes: [UInt8]) -> Bool { LoopbackRelay.write(bytes, to: server) }

  func passAnswers() {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = recv(server, &buffer, buffer.count, 0)
      guard count > 0, !isMuted.withLock({ $0 }), LoopbackRelay.write(Array(buffer[..<count]), to: client) else { break }
    }
    cut()
  }

  func cut() {
    shutdown(client, Int32(SHUT_RDWR))
    shutdown(server, Int32(SHUT_RDWR))
  }
}
