import FlyingSocks
import Foundation

/// A connection on which a test writes bytes as they are, and reads what comes.
struct RawConnection: Sendable {
  private let socket: AsyncSocket

  /// Connects to a port on loopback.
  static func open(_ port: Int) async throws -> RawConnection {
    RawConnection(socket: try await AsyncSocket.connected(to: .inet(ip4: "127.0.0.1", port: UInt16(port)), pool: Self.pool()))
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

  func close() throws { try socket.close() }
}
