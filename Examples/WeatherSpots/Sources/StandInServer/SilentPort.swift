import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A port of 127.0.0.1 that refuses connections for as long as this is held: one that is only free may be given to another server.
///
/// On Linux a server may listen at it meanwhile, when it asks for the port by its number.
public final class SilentPort: Sendable {
  /// The number of the port.
  public let port: Int
  private let descriptor: Int32

  /// Takes a port.
  ///
  /// - Parameter number: The number of the port; 0 for one that is free.
  /// - Throws: `POSIXError` where another has taken the port already.
  public init(_ number: Int = 0) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var (address, length, yes) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size), Int32(1))
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(clamping: number).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let socket = descriptor
    // Nobody listens: whoever connects is refused.
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    if !result { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  deinit { close(descriptor) }
}
