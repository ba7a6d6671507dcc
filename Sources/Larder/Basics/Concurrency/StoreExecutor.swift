package import Dispatch

/// The serial executor of a store: its backend is called here, so that nothing blocks the cooperative pool.
package final class StoreExecutor: SerialExecutor {
  package let queue: DispatchQueue

  package init(label: String) { queue = DispatchQueue(label: label, qos: .userInitiated) }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  /// Runs blocking work here, and waits for it without blocking.
  package func run<Result: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    try await queue.run(work)
  }
}

extension DispatchQueue {
  /// Runs work that may block on the queue, and returns its result without blocking the caller's thread.
  nonisolated(nonsending) func run<Output: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    let result: Result<Output, Failure> = await withCheckedContinuation { continuation in
      async {
        do throws(Failure) {
          continuation.resume(returning: .success(try work()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }
}
