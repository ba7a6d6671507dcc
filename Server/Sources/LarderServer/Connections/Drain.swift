internal import ServiceLifecycle
internal import Synchronization

/// Service that delays the shutdown, so that `/readyz` refuses for a while and requests are still answered.
final class Drain: Service {
  private let begun = Mutex(false)
  private let time: Duration

  init(time: Duration) { self.time = time }

  /// Whether the shutdown has begun.
  var hasBegun: Bool { begun.withLock { $0 } }

  func run() async throws {
    do { try await gracefulShutdown() } catch { return }
    // From here on `/readyz` refuses, so that a load balancer sends its requests elsewhere.
    begun.withLock { $0 = true }
    // The service group cancels the sleep at its own time limit, which is no failure.
    do { try await Task.sleep(for: time) } catch { return }
  }
}
