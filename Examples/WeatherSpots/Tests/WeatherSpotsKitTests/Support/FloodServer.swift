import Foundation
import StandInServer
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A server on loopback that sends a body without end as fast as it can, each connection from a thread of its own.
final class FloodServer: Sendable {
  let url: URL
  /// The bytes that each connection took, entered when the other side has closed it.
  let closed = AwaitableState<[Int]>([])
  private let listener: Int32

  /// Makes a server that says when a connection has taken a mebibyte.
  init(status: String = "200 OK", _ fields: [String] = [], flooded: @escaping @Sendable () -> Void = {}) throws {
    #if canImport(Glibc)
      let listener = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let listener = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    self.listener = listener
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) == 0 && listen(listener, 100) == 0 && getsockname(listener, address, &size) == 0
      }
    }
    try #require(isBound)
    url = try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/a"))
    let head = (["HTTP/1.1 \(status)", "Content-Type: text/plain"] + fields + ["", ""]).joined(separator: "\r\n")
    Thread.detachNewThread { [closed] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread {
          let bytes = Self.flood(connection, head, flooded)
          closed.update { $0.append(bytes) }
        }
      }
    }
  }

  /// Stops listening.
  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  /// Sends until nobody takes any more; returns how many bytes were taken.
  private static func flood(_ connection: Int32, _ head: String, _ flooded: () -> Void) -> Int {
    #if canImport(Glibc)
      let flags = Int32(MSG_NOSIGNAL)
    #else
      let flags: Int32 = 0
      var on: Int32 = 1
      setsockopt(connection, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
    defer { close(connection) }
    var request = [UInt8](repeating: 0, count: 65_536)
    guard recv(connection, &request, request.count, 0) > 0 else { return 0 }
    guard send(connection, head, head.utf8.count, flags) > 0 else { return 0 }
    let piece = [UInt8](repeating: 0x20, count: 65_536)
    var taken = 0
    while true {
      let count = send(connection, piece, piece.count, flags)
      guard count > 0 else { return taken }
      if taken < 1 << 20, taken + count >= 1 << 20 { flooded() }
      taken += count
    }
  }
}
