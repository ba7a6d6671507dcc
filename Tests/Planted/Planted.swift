// Mistakes that a sanitizer must find: Scripts/Torture/sanitize.sh runs each of them, and believes a silent run of the tests only afterwards.

import CPlanted
import Foundation
import Synchronization

@main enum Planted {
  /// A number that two threads change without a lock.
  final class Counter: @unchecked Sendable {
    var count = 0
  }

  static func main() {
    switch CommandLine.arguments.dropFirst().first {
    case "race": race()
    case "lock": lockedCount()
    case "overflow": planted_overflow(CommandLine.arguments.count)
    case "use-after-free": planted_use_after_free(CommandLine.arguments.count)
    default:
      print("usage: Planted race|lock|overflow|use-after-free")
      exit(64)
    }
  }

  /// Lets two threads add to one number.
  private static func race() {
    let counter = Counter()
    both {
      for number in 0..<200_000 {
        counter.count += 1
        // On a busy machine one thread might have done all before the other has its turn.
        if number % 500 == 0 { sched_yield() }
      }
    }
    print("counted \(counter.count)")
  }

  /// Lets two threads add to one number under a lock, which is no mistake.
  private static func lockedCount() {
    let counter = Counter()
    let lock = NSLock()
    both { for _ in 0..<200_000 { lock.withLock { counter.count += 1 } } }
    print("counted \(counter.count)")
  }

  /// Runs a body in two threads at the same time: a short one might end before the other begins.
  ///
  /// They meet at a number that orders nothing else, so that the meeting does not look like a lock.
  private static func both(_ body: @escaping @Sendable () -> Void) {
    let arrived = Arrivals()
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<2 {
      Thread.detachNewThread {
        arrived.count.wrappingAdd(1, ordering: .relaxed)
        while arrived.count.load(ordering: .relaxed) < 2 { sched_yield() }
        body()
        done.signal()
      }
    }
    for _ in 0..<2 { done.wait() }
  }

  /// The number of threads that have come.
  private final class Arrivals: Sendable {
    let count = Atomic(0)
  }
}
