internal import Larder

#if canImport(Network)
  internal import Network
#endif

/// A watch on the device's network, whose changes may let a failed exchange succeed.
struct NetworkWatch: Sendable {
  /// Shortest time between two retries after changes of the network.
  ///
  /// A network interface that comes up reports several changes, and an unstable interface may go up and down all the time.
  static let pause = Duration.seconds(1)

  /// Returns a stream of the changes of the network that happen after the call.
  ///
  /// The stream ends at once on systems that do not report changes of the network.
  let changes: @Sendable () -> AsyncStream<Void>

  /// Calls `wake` after each change of the network, until the task is cancelled or the engine no longer exists.
  ///
  /// - Parameter wake: Retries failed exchanges. The closure returns whether any exchange had failed, or `nil` if the engine no longer
  ///   exists.
  func run(_ clock: any WallClock, _ wake: @Sendable () async -> Bool?) async {
    for await _ in changes() {
      guard let hasWoken = await wake() else { return }
      // The stream buffers one change, so that a change during the pause leads to one more retry.
      do { if hasWoken { try await clock.sleep(for: Self.pause) } } catch { return }
    }
  }

  /// The network watch of the system: `NWPathMonitor` on Apple's platforms, and a stream without changes on other systems.
  static let system = NetworkWatch {
    #if canImport(Network)
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        let watch = Task {
          for await path in NWPathMonitor() where path.status == .satisfied { continuation.yield() }
          continuation.finish()
        }
        continuation.onTermination = { _ in watch.cancel() }
      }
    #else
      AsyncStream { $0.finish() }
    #endif
  }
}
