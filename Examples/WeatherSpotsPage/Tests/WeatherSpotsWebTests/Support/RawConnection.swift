import FlyingSocks
import Foundation
import Synchronization
import Testing

/// A connection on which a test writes bytes as they are, and reads what comes; it is closed with the last reference at the latest.
final class RawConnection: Sendable {
  private let socket: AsyncSocket
  private let isOpen = Mutex(true)

  private init(_ socket: AsyncSocket) { self.socket = socket }

  deinit { do { try close() } catch { Issue.record(error) } }

  /// Connects to a port on loopback.
  static func open(_ port: Int) async throws -> RawConnection {
    RawConnection(try await AsyncSocket.connected(to: .inet(ip4: "127.0.0.1", port: UInt16(port)), pool: pool()))
  }

  private static let pooled = Task { () -> any AsyncSocketPool in
    let pool = SocketPool<Poll>.make()
    try await pool.prepare()
    Task { try await pool.run() }
    return pool
  }

  private static func pool() async throws -> any AsyncSocketPool { try await pooled.value }

  func write(_ text: String, _ more: Data = Data()) async throws { try await socket.write(Data(text.utf8) + more) }

  /// Returns what comes until a text is there, or the connection ends.
  func read(until end: String? = nil) async throws -> String {
    var bytes: [UInt8] = []
    do {
      while true {
        bytes.append(try await socket.read())
        if let end, bytes.count >= end.utf8.count, bytes.suffix(end.utf8.count) == Array(end.utf8)[...] { break }
      }
    } catch {}  // it ended
    return String(decoding: bytes, as: UTF8.self)
  }

  func close() throws {
    // Another connection may have got the number of a socket that was closed before.
    let wasOpen = isOpen.withLock { isOpen in
      defer { isOpen = false }
      return isOpen
    }
    if wasOpen { try socket.close() }
  }
}
