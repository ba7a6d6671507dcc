import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// The ports of servers that end and come back to theirs.
enum LoopbackPort {
  private static let given = Mutex<Set<Int>>([])

  /// Returns a port that nobody listens at, from below those that systems hand out: a server that starts again must find it free.
  ///
  /// Each is given once, since the server listens at it only later.
  static func free() throws -> Int {
    for _ in 0..<100 {
      let port = Int.random(in: 20_000..<32_000)
      let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(socket) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = UInt16(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      let isFree = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
      }
      if isFree, given.withLock({ $0.insert(port).inserted }) { return port }
    }
    throw POSIXError(.EADDRINUSE)
  }
}
