import Larder
import LarderTesting
import Synchronization
import Testing

@testable import LarderSync

@Suite(.timeLimit(.minutes(15))) struct ScopeAlarmTests {
  /// Before, the next start of the engine waited for an edit, for news or for a change of the network.
  @Test func aRunThatIsCancelledAtAFailureLeavesAReasonForTheNextOne() async {
    let alarm = ScopeAlarm()
    let clock = ManualClock()
    let exchanges = Mutex(0)
    let stopped = Task {
      await alarm.run(clock) {
        exchanges.withLock { $0 += 1 }
        withUnsafeCurrentTask { $0?.cancel() }
        throw SyncProblem.unreachable("no network")
      }
    }
    await stopped.value
    await alarm.run(clock) {
      exchanges.withLock { $0 += 1 }
      return false
    }
    #expect(exchanges.withLock { $0 } == 2)
  }
}
