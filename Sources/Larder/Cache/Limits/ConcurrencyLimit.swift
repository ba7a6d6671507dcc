/// A number of permits: at most so many operations run at a time, the others wait in the order in which they came.
///
/// ```swift
/// let limit = ConcurrencyLimit(4)
/// let page = try await limit.withPermit { try await download(url) }
/// ```
///
/// Share one among everything that talks to one host. A task that is cancelled while it waits leaves the queue at once. Cost: constant.
public final class ConcurrencyLimit: Sendable {
  /// The number of operations that may run at a time.
  public let limit: Int
  let semaphore: AsyncSemaphore

  /// Makes a limit of at least 1.
  public init(_ limit: Int) {
    self.limit = max(limit, 1)
    semaphore = AsyncSemaphore(self.limit)
  }

  /// Runs an operation when a permit is free, and gives it back however the operation ends.
  ///
  /// - Throws: `CancellationError` when the task is cancelled while it waits; else what the operation throws.
  public func withPermit<Result>(_ operation: () async throws -> Result) async throws -> Result {
    guard await semaphore.acquireUnlessCancelled() else { throw CancellationError() }
    defer { semaphore.release() }
    return try await operation()
  }

  /// The number of operations that wait.
  public var waitingCount: Int { semaphore.waitingCount }
}
