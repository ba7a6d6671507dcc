import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A reserved port of 127.0.0.1 that refuses connections for as long as this object exists.
///
/// Use it instead of a free port number, which the system may give to another server. On Linux a server may listen on the reserved port
/// if it asks for the port by number.
public final class SilentPort: Sendable {
  /// Number of the port.
  public let port: Int
  private let descriptor: Int32

  /// Reserves a port.
  ///
  /// - Parameter number: Number of the port, or 0 for any free port.
  /// - Throws: `POSIXError` if the port is already in use.
  public init(_ number: Int = 0) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    // A process started by a test would otherwise inherit the socket and keep the port reserved.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var (address, length, yes) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size), Int32(1))
    // Lets a server that also sets the option bind to the port while it is reserved.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(clamping: number).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let socket = descriptor
    // Bound without `listen`: the system refuses every connection to the port.
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
      }
    }
    // Set before the throw: `deinit`, which closes the socket, runs only for a fully initialized object.
    port = Int(UInt16(bigEndian: address.sin_port))
    if !result { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  deinit { close(descriptor) }
}
