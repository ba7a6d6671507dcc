import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// A port that refuses connections for as long as this is held: one that is only free may be given to the server of another test.
final class SilentPort {
  private let descriptor: Int32

  /// - Throws: `POSIXError` where another has taken the port already.
  init(of url: URL) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var (address, yes) = (sockaddr_in(), Int32(1))
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(url.port ?? 0).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result = withUnsafeBytes(of: &address) { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) {
        bind(descriptor, $0.baseAddress, socklen_t(bytes.count))
      }
    }
    // Nobody listens: whoever connects is refused.
    if result != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  deinit { close(descriptor) }
}
