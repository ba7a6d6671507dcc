import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15))) struct SignalTests {
  @Test func whatIsRaisedBeforeTheWaitIsNotMissed() async {
    let signal = Signal()
    let moment = signal.moment
    signal.raise()
    await signal.wait(after: moment)
    #expect(signal.moment != moment)
  }

  @Test func aRaiseWakesEveryoneWhoWaits() async {
    let signal = Signal()
    let moment = signal.moment
    let waiters = (0..<8).map { _ in Task { await signal.wait(after: moment) } }
    while !signal.isAwaited { await Task.yield() }
    signal.raise()
    for waiter in waiters { await waiter.value }
    #expect(!signal.isAwaited)
  }

  @Test func aCancelledTaskWaitsNoLonger() async {
    let signal = Signal()
    let moment = signal.moment
    let waiter = Task { await signal.wait(after: moment) }
    while !signal.isAwaited { await Task.yield() }
    waiter.cancel()
    await waiter.value
    #expect(!signal.isAwaited && signal.moment == moment)
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await signal.wait(after: moment)
    }
    await early.value
  }

  @Test func nobodyWaitsAfterTheEnd() async {
    let signal = Signal()
    let moment = signal.moment
    let waiter = Task { await signal.wait(after: moment) }
    while !signal.isAwaited { await Task.yield() }
    signal.finish()
    await waiter.value
    await signal.wait(after: signal.moment)
    #expect(signal.isFinished)
  }

  @Test func aConsumerInALoopMissesNothing() async {
    let count = Torture.count(2_000, full: 10_000)
    let signal = Signal()
    let items = Mutex<[Int]>([])
    let consumer = Task {
      var taken = 0
      while taken < count {
        let moment = signal.moment
        let found = items.withLock { items in
          defer { items = [] }
          return items.count
        }
        taken += found
        if found == 0 { await signal.wait(after: moment) }
      }
      return taken
    }
    for item in 0..<count {
      items.withLock { $0.append(item) }
      signal.raise()
      if item % 7 == 0 { await Task.yield() }
    }
    let taken = await consumer.value
    #expect(taken == count)
  }
}
