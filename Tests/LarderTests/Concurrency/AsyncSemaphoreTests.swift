import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct AsyncSemaphoreTests {
  private final class Tally: Sendable {
    let served = Mutex<[Int]>([])
    let counts = Mutex((present: 0, most: 0))
  }

  @Test func permitsAreGivenInTheOrderOfAsking() async {
    let semaphore = AsyncSemaphore(1)
    let tally = Tally()
    await semaphore.acquire()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<5 {
      tasks.append(
        Task {
          await semaphore.acquire()
          tally.served.withLock { $0.append(number) }
          semaphore.release()
        })
      while semaphore.waitingCount <= number { await Task.yield() }
    }
    semaphore.release()
    for task in tasks { await task.value }
    #expect(tally.served.withLock { $0 } == [0, 1, 2, 3, 4])
    #expect(semaphore.freeCount == 1)
  }

  @Test func aCancelledTaskLeavesTheQueueAndTakesNoPermit() async {
    let semaphore = AsyncSemaphore(1)
    #expect(semaphore.tryAcquire())
    #expect(!semaphore.tryAcquire())
    let cancelled = Task { await semaphore.acquireUnlessCancelled() }
    while semaphore.waitingCount == 0 { await Task.yield() }
    let patient = Task { await semaphore.acquire() }
    while semaphore.waitingCount == 1 { await Task.yield() }
    cancelled.cancel()
    patient.cancel()  // it waits all the same
    let hasPermit = await cancelled.value
    #expect(!hasPermit && semaphore.waitingCount == 1)
    semaphore.release()
    await patient.value
    #expect(semaphore.freeCount == 0)
    semaphore.release()
    #expect(semaphore.freeCount == 1)
  }

  @Test func noMorePermitsAreOutThanThereAre() async {
    let semaphore = AsyncSemaphore(3)
    let tally = Tally()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<300 {
        group.addTask {
          if number % 5 == 0 { withUnsafeCurrentTask { $0?.cancel() } }
          guard await semaphore.acquireUnlessCancelled() else { return }
          tally.counts.withLock { counts in
            counts.present += 1
            counts.most = max(counts.most, counts.present)
          }
          await Task.yield()
          tally.counts.withLock { $0.present -= 1 }
          semaphore.release()
        }
      }
    }
    #expect(tally.counts.withLock { $0.most } <= 3)
    #expect(semaphore.freeCount == 3 && semaphore.waitingCount == 0 && semaphore.queueLength == 0)
  }
}
