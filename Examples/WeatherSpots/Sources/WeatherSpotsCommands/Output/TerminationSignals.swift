import Dispatch
import Foundation
import Larder

/// The signals SIGINT (Ctrl-C) and SIGTERM, which end what runs, so that the store is closed and the exit code is 0; a second one kills.
struct TerminationSignals {
  private let signals: AsyncStream<Void>
  private let sources: [any DispatchSourceSignal]

  /// Begins to receive the signals: from now on they do not kill the process.
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
