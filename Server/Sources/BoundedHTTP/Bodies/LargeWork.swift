internal import Dispatch
internal import Foundation
internal import Synchronization

/// Threads for work that needs a processor for milliseconds: parsing large bodies, encoding and compressing large pages.
///
/// Swift's task pool has one thread for each processor, so a few such jobs there would stop all requests. One identity runs one job at a
/// time, which leaves threads and processors to the others.
package final class LargeWork: Sendable {
  /// Largest size in bytes that is processed on the thread of the task.
  package static let mostInPlace = 64 << 10

  private let permits: FairSemaphore
  /// Free queues, each with a thread of its own.
  ///
  /// A concurrent queue would take its threads from the pool of Swift's tasks.
  private let queues: Mutex<[DispatchQueue]>

  package init(threads: Int = max(2, ProcessInfo.processInfo.activeProcessorCount)) {
    permits = FairSemaphore(total: threads, perIdentity: 1)
    queues = Mutex((0..<threads).map { DispatchQueue(label: "larder-large-\($0)") })
  }

  /// Number of jobs that wait for a thread.
  package var waitingCount: Int { permits.waitingCount }

  /// Runs work on one of the threads, once no other job of the identity runs, and returns its result.
  package func run<Value: Sendable>(_ identity: String?, _ work: @escaping @Sendable () -> Value) async -> Value {
    await permits.withPermit(for: identity) {
      // There are as many queues as permits, so a job with a permit always finds a free one.
      let queue = queues.withLock { $0.popLast() } ?? DispatchQueue(label: "larder-large")
      defer { queues.withLock { $0.append(queue) } }
      return await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: work()) } }
    }
  }
}
