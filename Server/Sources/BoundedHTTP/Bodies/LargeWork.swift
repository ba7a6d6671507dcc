internal import Dispatch
internal import Foundation
internal import Synchronization

/// The threads for what needs a processor for long: reading large bodies, making and packing large pages.
///
/// On the threads of Swift's tasks, of which there is one for each processor, some of it would stop all requests. Of one identity, one
/// piece is worked at, so that others find a thread and a processor.
package final class LargeWork: Sendable {
  /// The most bytes of what is worked at where it is.
  package static let mostInPlace = 64 << 10

  private let turns: Turns
  /// Those that are free; each is a thread, since a queue that takes several jobs at once has its threads from the pool of tasks.
  private let queues: Mutex<[DispatchQueue]>

  package init(threads: Int = max(2, ProcessInfo.processInfo.activeProcessorCount)) {
    turns = Turns(threads, each: 1)
    queues = Mutex((0..<threads).map { DispatchQueue(label: "larder-large-\($0)") })
  }

  /// The number of pieces of work that wait for their turn.
  package var waitingCount: Int { turns.waitingCount }

  /// Runs work on a thread, when it is the identity's turn.
  package func run<Value: Sendable>(_ identity: String?, _ work: @escaping @Sendable () -> Value) async -> Value {
    await turns.take(identity) {
      // There is one for each turn.
      let queue = queues.withLock { $0.popLast() } ?? DispatchQueue(label: "larder-large")
      defer { queues.withLock { $0.append(queue) } }
      return await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: work()) } }
    }
  }
}
