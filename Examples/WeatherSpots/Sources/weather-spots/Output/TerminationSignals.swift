import Dispatch
import Foundation
import Larder

/// Ends what runs on Ctrl-C (SIGINT) and SIGTERM, so that the store is closed and the exit code is 0; a second signal kills as ever.
struct TerminationSignals {
  private let signals: AsyncStream<Void>
  private let sources: [any DispatchSourceSignal]

  /// From now on the signals do not kill the process.
  init() {
    let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.signals = signals
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        signal(number, SIG_DFL)
        continuation.yield()
      }
      source.activate()
      return source
    }
  }

  /// Runs the body until it ends by itself, or a signal comes, which cancels it.
  func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
    defer { withExtendedLifetime(sources) {} }
    let task = Task { try await body() }
    let waiting = Task { [signals] in
      for await _ in signals { task.cancel() }
    }
    defer { waiting.cancel() }
    do {
      try await task.value
    } catch {
      guard task.isCancelled, error is CancellationError || (error as? RepositoryError)?.code == .cancelled else { throw error }
    }
  }
}
