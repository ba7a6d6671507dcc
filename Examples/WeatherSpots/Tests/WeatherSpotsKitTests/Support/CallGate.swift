import StandInServer

/// Counts calls, and holds them back while it is closed.
final class CallGate: Sendable {
  struct Calls: Sendable {
    fileprivate var isOpen: Bool
    fileprivate var held: [AsyncStream<Void>.Continuation] = []
    var count = 0
    var active = 0
    var mostActive = 0
    var cancelled = 0
  }

  let calls: AwaitableState<Calls>

  init(isOpen: Bool = false) { calls = AwaitableState(Calls(isOpen: isOpen)) }

  func close() { calls.update { $0.isOpen = false } }

  func open() {
    let held = calls.update { calls in
      defer { calls.held = [] }
      calls.isOpen = true
      return calls.held
    }
    for call in held { call.finish() }
  }

  /// Waits until the gate is open, and returns false for a call that was cancelled.
  func pass() async -> Bool {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    calls.update { calls in
      calls.count += 1
      calls.active += 1
      calls.mostActive = max(calls.mostActive, calls.active)
      if calls.isOpen { continuation.finish() } else { calls.held.append(continuation) }
    }
    for await _ in stream {}  // ends when the gate is opened, or when the task is cancelled
    let isCancelled = Task.isCancelled
    calls.update { calls in
      calls.active -= 1
      calls.cancelled += isCancelled ? 1 : 0
    }
    return !isCancelled
  }
}
