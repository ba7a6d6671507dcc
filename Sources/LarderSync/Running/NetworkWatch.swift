internal import Larder

#if canImport(Network)
  internal import Network
#endif

/// The changes of the device's network, of which each may let an exchange succeed that has failed before.
struct NetworkWatch: Sendable {
  /// The shortest time between two wakes: an interface that comes up says so in several steps, and one may come and go all the time.
  static let pause = Duration.seconds(1)

  /// Returns the changes from now on; a stream that ends at once where the system does not tell.
  let changes: @Sendable () -> AsyncStream<Void>

  /// Wakes after each change, until the task is cancelled or the engine is gone.
  ///
  /// - Parameter wake: Tries again what has failed; returns whether there was anything, `nil` if the engine is gone.
  func run(_ clock: any WallClock, _ wake: @Sendable () async -> Bool?) async {
    for await _ in changes() {
      guard let hasWoken = await wake() else { return }
      // What changes meanwhile is kept by the stream, and leads to one more wake.
      do { if hasWoken { try await clock.sleep(for: Self.pause) } } catch { return }
    }
  }

  /// The network as the system knows it.
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
