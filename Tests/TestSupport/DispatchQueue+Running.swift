package import Dispatch

extension DispatchQueue {
  /// Runs a body on this queue and returns its result: for what takes seconds and would keep other tests from the cooperative pool.
  package func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      async { continuation.resume(returning: body()) }
    }
  }
}
