import Dispatch

/// A thread that blocks in the place of a task, in as little code as there can be: a queue, and a continuation.
struct WriterThread: Sendable {
  private let queue = DispatchQueue(label: "larder-bench.writer", qos: .userInitiated)

  /// Runs work on the thread, and resumes the caller when it is done.
  func run(_ work: @escaping @Sendable () throws -> Void) async throws {
    try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
      queue.async { continuation.resume(with: Result { try work() }) }
    }
  }
}
