import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// The connections of a proxy: for each that a client makes to its port, one to the port behind it, and a thread for both.
final class LoopbackRelay: Sendable {
  private struct State: Sendable {
    var sockets: Set<Int32> = []
    var isOpen = true
  }

  let port: Int
  private let target: Int
  private let listener: Int32
  private let state = Mutex(State())

  init(to target: Int) throws {
    self.target = target
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let (listener, length) = (listener, size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
      }
    }
    guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  /// Begins to take connections.
  ///
  /// - Parameter serve: Passes on what comes, given the client's socket and the server's, until both are shut down.
  func start(_ serve: @escaping @Sendable (Int32, Int32) -> Void) {
    Thread.detachNewThread { [self] in
      while state.withLock({ $0.isOpen }) {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { break }
        guard let server = connected() else {
          _ = shutdown(client, Int32(SHUT_RDWR))
          close(client)
          continue
        }
        var on: Int32 = 1
        for socket in [client, server] { setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size)) }
        state.withLock { $0.sockets.formUnion([client, server]) }
        Thread.detachNewThread { [self] in
          serve(client, server)
          // Forgotten first: their numbers may be those of other sockets at once.
          state.withLock { $0.sockets.subtract([client, server]) }
          for socket in [client, server] { close(socket) }
        }
      }
      close(listener)
    }
  }

  /// Ends all connections, and takes no more.
  func end() {
    state.withLock { state in
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
      // Once: its number is soon that of another socket.
      if state.isOpen { shutdown(listener, Int32(SHUT_RDWR)) }
      state.isOpen = false
    }
  }

  /// Returns the socket of a new connection to what is behind the proxy; `nil` where nobody takes it.
  func connected() -> Int32? {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(target)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    if result == 0 { return server }
    close(server)
    return nil
  }

  /// Sends bytes, all of them unless the connection ends.
  /// - Returns: Whether all were sent.
  static func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
