internal import Larder

#if canImport(Network)
  internal import Network
#elseif os(Linux) && canImport(Glibc)
  internal import Dispatch
  internal import Glibc
  internal import Synchronization
#endif

/// A watch on the device's network, whose changes may let a failed exchange succeed.
struct NetworkWatch: Sendable {
  /// Shortest time between two retries.
  ///
  /// An interface that comes up reports several changes, and an unstable one may go up and down all the time.
  static let pause = Duration.seconds(1)

  /// Returns a stream of changes from now on.
  ///
  /// It ends at once on systems that do not report changes.
  let changes: @Sendable () -> AsyncStream<Void>

  /// Calls `wake` after each change, until the task is cancelled or the engine is gone.
  ///
  /// - Parameter wake: Retries failed exchanges. It returns whether there were any, or `nil` if the engine is gone.
  func run(_ clock: any WallClock, _ wake: @Sendable () async -> Bool?) async {
    for await _ in changes() {
      guard let hasWoken = await wake() else { return }
      // The stream buffers one change, so that a change during the pause leads to one more retry.
      do { if hasWoken { try await clock.sleep(for: Self.pause) } } catch { return }
    }
  }

  /// The watch of the system: `NWPathMonitor` on Apple's platforms, netlink on Linux with glibc, elsewhere none.
  static let system = NetworkWatch {
    #if canImport(Network)
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        let watch = Task {
          for await path in NWPathMonitor() where path.status == .satisfied { continuation.yield() }
          continuation.finish()
        }
        continuation.onTermination = { _ in watch.cancel() }
      }
    #elseif os(Linux) && canImport(Glibc)
      RouteSocket.changes()
    #else
      AsyncStream { $0.finish() }
    #endif
  }
}

#if os(Linux) && canImport(Glibc)
  /// A netlink socket, on which Linux announces changes of interfaces, addresses and routes.
  ///
  /// It needs neither root nor a daemon such as NetworkManager. The announcement is not parsed: only an exchange shows whether the server
  /// is reachable now.
  enum RouteSocket {
    /// Constants of `linux/netlink.h` and `linux/rtnetlink.h`, which Swift does not import.
    private static let route: Int32 = 0
    private static let (link, addresses4, routes4, addresses6): (UInt32, UInt32, UInt32, UInt32) = (0x1, 0x10, 0x40, 0x100)
    static let groups = link | addresses4 | routes4 | addresses6

    /// A dispatch source that can be cancelled from any thread.
    private final class Watch: Sendable {
      private let source: Mutex<any DispatchSourceRead>

      init(_ source: sending any DispatchSourceRead) { self.source = Mutex(source) }

      func cancel() { source.withLock { $0.cancel() } }
    }

    private static let queue = DispatchQueue(label: "LarderSync.RouteSocket")

    /// Returns a stream with one element for each burst of changes.
    ///
    /// It ends at once if the system refuses the socket. The socket is closed when the stream is no longer read.
    /// - Parameter family: The netlink protocol. Tests pass another one than the default.
    static func changes(of family: Int32 = route) -> AsyncStream<Void> {
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        guard let descriptor = open(family) else {
          continuation.finish()
          return
        }
        // A dispatch source and not a blocked thread: an app may have no change for days.
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
          // Netlink is a datagram socket: reading one byte removes the whole announcement. `ENOBUFS` reports announcements that were lost.
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

    /// Returns a bound socket, or `nil` if the system, a sandbox or the limit of descriptors refuses it.
    private static func open(_ family: Int32) -> Int32? {
      let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let descriptor = socket(AF_NETLINK, kind, family)
      guard descriptor >= 0 else { return nil }
      // `sockaddr_nl`: the family, two bytes of padding, a port that the kernel chooses, and the groups. Swift does not import it.
      var address = sockaddr()
      address.sa_family = sa_family_t(AF_NETLINK)
      withUnsafeMutableBytes(of: &address) { $0.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self) }
      // 12 bytes is the size of `sockaddr_nl`. `sockaddr` has 16.
      guard bind(descriptor, &address, 12) == 0 else {
        _ = close(descriptor)
        return nil
      }
      return descriptor
    }
  }
#endif
