package import Dispatch

/// The serial executor of a store, on whose thread the store's backend may block without blocking the cooperative pool.
package final class StoreExecutor: SerialExecutor {
  package let queue: DispatchQueue

  package init(label: String) { queue = DispatchQueue(label: label, qos: .userInitiated) }

  package func enqueue(_ job: consuming ExecutorJob) {
    // A closure cannot consume the noncopyable `job`. `UnownedJob` can be copied, and the queue runs the closure exactly once.
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  /// Runs blocking work on the executor's queue, and returns the result without blocking the caller's thread.
  package func run<Result: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    try await queue.run(work)
  }
}

extension DispatchQueue {
  /// Runs work that may block on this queue, and returns the result without blocking the caller's thread.
  nonisolated(nonsending) func run<Output: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Output
  ) async throws(Failure) -> Output {
    // A continuation can throw only `any Error`, so the typed error of `work` is passed on as a `Result`.
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
