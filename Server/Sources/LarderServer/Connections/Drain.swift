internal import ServiceLifecycle
internal import Synchronization

/// The time between the wish to end and the end, in which a server says that it is not ready and still takes requests.
final class Drain: Service {
  private let begun = Mutex(false)
  private let time: Duration

  init(time: Duration) { self.time = time }

  /// Whether the server is about to end.
  var hasBegun: Bool { begun.withLock { $0 } }

  func run() async throws {
    do { try await gracefulShutdown() } catch { return }
    begun.withLock { $0 = true }
    // Cut short by whoever cannot wait, which is no failure.
    do { try await Task.sleep(for: time) } catch { return }
  }
}
