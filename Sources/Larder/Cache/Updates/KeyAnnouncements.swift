internal import Synchronization

/// An observer of the commits to the collection of a cache, which wakes the readers of the keys concerned.
///
/// One observer for all readers: adding, removing and telling one does not depend on how many there are.
final class KeyAnnouncements: ChangeObserver {
  private struct State: Sendable {
    /// The signals by record; under `nil` those whose key cannot be a record's.
    var signals: [RecordKey?: [ObjectIdentifier: WeakSignal]] = [:]
    var isFinished = false
    var wokenCount = 0

    func signals(of key: RecordKey?) -> [Signal] { signals[key]?.values.compactMap(\.signal) ?? [] }
  }

  private let state = Mutex(State())

  /// The number of readers: for tests.
  var count: Int { state.withLock { $0.signals.values.reduce(0) { $0 + $1.count } } }
  /// The number of readers that commits woke: for tests.
  var wokenCount: Int { state.withLock { $0.wokenCount } }

  func add(_ signal: Signal, _ key: RecordKey?) {
    let isFinished = state.withLock { state in
      state.signals[key, default: [:]][ObjectIdentifier(signal)] = WeakSignal(signal: signal)
      return state.isFinished
    }
    if isFinished { signal.finish() }
  }

  func remove(_ signal: Signal, _ key: RecordKey?) {
    state.withLock { state in
      state.signals[key]?[ObjectIdentifier(signal)] = nil
      if state.signals[key]?.isEmpty == true { state.signals[key] = nil }
    }
  }

  /// Wakes the readers of a key.
  func wake(_ key: RecordKey?) {
    for signal in state.withLock({ $0.signals(of: key) }) { signal.raise() }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    let concerned = state.withLock { state -> [Signal] in
      guard !state.signals.isEmpty else { return [] }
      let concerned = changes.flatMap { state.signals(of: $0.key) }
      state.wokenCount += concerned.count
      return concerned
    }
    for signal in concerned { signal.raise() }
  }

  func finish() {
    let all = state.withLock { state in
      state.isFinished = true
      return state.signals.values.flatMap { $0.values.compactMap(\.signal) }
    }
    for signal in all { signal.finish() }
  }
}

/// A reader's signal, for as long as the reader is there.
struct WeakSignal: Sendable {
  weak let signal: Signal?
}
