internal import Dispatch

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
