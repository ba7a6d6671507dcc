import Dispatch
import Foundation
import Larder

/// Handlers of SIGINT (Ctrl-C) and SIGTERM that cancel the running command.
///
/// The store is then closed and the exit code is 0. A second signal of the same kind kills the process.
struct TerminationSignals {
  private let signals: AsyncStream<Void>
  private let sources: [any DispatchSourceSignal]

  /// Installs the handlers, after which the first signal no longer kills the process.
  init() {
    let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.signals = signals
    sources = [SIGINT, SIGTERM].map { number in
      // A dispatch source does not replace the default action, which would kill the process.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        // The same signal again must kill the process if the cleanup hangs.
        signal(number, SIG_DFL)
        continuation.yield()
      }
      source.activate()
      return source
    }
  }

  /// Runs `body` until it returns or a signal cancels it.
  func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
    // Released sources would deliver no more signals.
    defer { withExtendedLifetime(sources) {} }
    let task = Task { try await body() }
    let waiting = Task { [signals] in
      for await _ in signals { task.cancel() }
    }
    defer { waiting.cancel() }
    do {
      try await task.value
    } catch {
      // Cancellation by a signal is a success. Every other error is thrown, even if a signal came too.
      guard task.isCancelled, error is CancellationError || (error as? RepositoryError)?.code == .cancelled else { throw error }
    }
  }
}
