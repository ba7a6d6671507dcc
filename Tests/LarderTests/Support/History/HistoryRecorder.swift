import Synchronization

/// Records the operations of several tasks, with the order in which they began and ended.
final class HistoryRecorder: Sendable {
  private struct State: Sendable {
    var clock = 0
    var events: [Int: [HistoryEvent]] = [:]
  }
  private let state = Mutex(State())

  /// The events by key.
  var events: [Int: [HistoryEvent]] { state.withLock { $0.events } }

  /// The next moment.
  func tick() -> Int {
    state.withLock { state in
      state.clock += 1
      return state.clock
    }
  }

  /// Records what an operation that began at a moment did to each key, now that it has returned.
  func returned(_ operations: [Int: RegisterOperation], invoked: Int) {
    state.withLock { state in
      state.clock += 1
      for (key, operation) in operations {
        state.events[key, default: []].append(HistoryEvent(operation: operation, invoked: invoked, returned: state.clock))
      }
    }
  }

  /// Records what an operation may have done, whose outcome is unknown.
  func unknown(_ operations: [Int: RegisterOperation], invoked: Int) {
    state.withLock { state in
      for (key, operation) in operations {
        state.events[key, default: []].append(HistoryEvent(operation: operation, invoked: invoked, returned: nil))
      }
    }
  }

  /// The keys whose events no order explains.
  func violations() -> [Int] { events.filter { !RegisterChecker.isLinearizable($0.value) }.keys.sorted() }
}

/// Lets tasks go at the same moment.
final class StartBarrier: Sendable {
  private let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])
  private let count: Int

  init(_ count: Int) { self.count = count }

  func wait() async {
    await withCheckedContinuation { continuation in
      let all: [CheckedContinuation<Void, Never>] = waiting.withLock { waiting in
        waiting.append(continuation)
        return waiting.count == count ? waiting : []
      }
      for continuation in all { continuation.resume() }
    }
  }
}
