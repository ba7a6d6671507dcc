#if os(Linux) && canImport(Glibc)
  internal import Dispatch
  internal import Glibc
  internal import Synchronization

  /// A netlink socket, on which Linux announces that interfaces, addresses and routes have changed.
  ///
  /// Any process may listen, and nothing needs to be installed or to run for it. What has changed is not read: whether the server can be
  /// reached now is what an exchange finds out.
  enum RouteSocket {
    /// The numbers of `linux/netlink.h` and `linux/rtnetlink.h`, which Swift does not import.
    private static let route: Int32 = 0
    private static let (link, addresses4, routes4, addresses6): (UInt32, UInt32, UInt32, UInt32) = (0x1, 0x10, 0x40, 0x100)
    static let groups = link | addresses4 | routes4 | addresses6

    /// A source that may be cancelled from any thread.
    private final class Watch: Sendable {
      private let source: Mutex<any DispatchSourceRead>

      init(_ source: sending any DispatchSourceRead) { self.source = Mutex(source) }

      func cancel() { source.withLock { $0.cancel() } }
    }

    private static let queue = DispatchQueue(label: "LarderSync.RouteSocket")

    /// Returns a stream with an element for each burst of changes; one that ends at once where the socket is refused.
    ///
    /// The socket is closed once nobody takes elements any more.
    /// - Parameter family: The netlink protocol; another than the default is for tests.
    static func changes(of family: Int32 = route) -> AsyncStream<Void> {
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        guard let descriptor = open(family) else {
          continuation.finish()
          return
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
          // An announcement goes whole, however few of its bytes are taken; one that was lost for want of space is told as an error.
          var byte: UInt8 = 0
          while recv(descriptor, &byte, 1, 0) >= 0 {}
          if errno == EAGAIN || errno == ENOBUFS { continuation.yield() } else { continuation.finish() }
        }
        source.setCancelHandler { _ = close(descriptor) }
        source.activate()
        let watch = Watch(source)
        continuation.onTermination = { _ in watch.cancel() }
      }
    }

    /// Returns a socket that listens; `nil` where the system, a sandbox or the limit of descriptors refuses it.
    private static func open(_ family: Int32) -> Int32? {
      let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let descriptor = socket(AF_NETLINK, kind, family)
      guard descriptor >= 0 else { return nil }
      // A `sockaddr_nl`: the family, two bytes of nothing, a port that the kernel chooses, and the groups.
      var address = sockaddr()
      address.sa_family = sa_family_t(AF_NETLINK)
      withUnsafeMutableBytes(of: &address) { $0.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self) }
      guard bind(descriptor, &address, 12) == 0 else {
        _ = close(descriptor)
        return nil
      }
      return descriptor
    }
  }
#endif
