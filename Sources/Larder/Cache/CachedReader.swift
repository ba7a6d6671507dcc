internal import Synchronization

/// One reader of the updates of one key.
///
/// It keeps nothing but what it has told last: what is new is looked up when it is asked for.
final class CachedReader<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: CachedReading {
  private struct Told: Equatable {
    let version: EntryVersion
    let state: Cached<Value>.State
  }

  private let cache: CachedRepository<Key, Value>
  private let key: Key
  private let signal: KeySignal
  private let told = Mutex<Told?>(nil)

  init(_ cache: CachedRepository<Key, Value>, _ key: Key) {
    self.cache = cache
    self.key = key
    signal = KeySignal(cache.look(key).recordKey)
    cache.storage.queue.hub.register(signal, for: cache.storage.collection)
    cache.addReader(signal, key)
  }

  deinit { cache.removeReader(signal, key) }

  func next() async -> Cached<Value>? {
    while !Task.isCancelled, signal.begin() {
      guard let found = cache.look(key).found, let cached = found.cached() else {
        told.withLock { $0 = nil }
        await wait(nil)
        continue
      }
      let now = Told(version: found.version, state: cached.state)
      let isNew = told.withLock { told in
        // An expired value is news to those only who were shown it before.
        if cached.state == .expired, told == nil { return false }
        defer { told = now }
        return told != now
      }
      if isNew { return cached }
      await wait(found.untilNextState)
    }
    return nil
  }

  /// Waits until something was stored, or the time has come.
  private func wait(_ time: Duration?) async {
    let (signal, clock) = (signal, cache.clock)
    let timer = time.map { time in
      Task {
        do {
          try await clock.sleep(for: time)
          signal.poke()
        } catch {}  // something came before
      }
    }
    await signal.wait()
    timer?.cancel()
  }
}

extension FoundEntry {
  /// How long until the entry is in another state; `nil` when it is in its last.
  fileprivate var untilNextState: Duration? {
    switch state {
    case .fresh: entry.freshLifetime - age
    case .stale: entry.usableLifetime - age
    case .expired: nil
    }
  }
}

/// Wakes a reader when something happens to its key.
final class KeySignal: ChangeObserver {
  private struct State: Sendable {
    var isSet = false
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let recordKey: RecordKey?
  private let state = Mutex(State())

  init(_ recordKey: RecordKey?) { self.recordKey = recordKey }

  /// Begins to look at what is there, so that what happens from now on wakes the next wait; `false` when the storage was closed.
  func begin() -> Bool {
    state.withLock { state in
      state.isSet = false
      return !state.isFinished
    }
  }

  func poke() { wake { $0.isSet = true } }
  func finish() { wake { $0.isFinished = true } }

  func receive(_ changes: [RecordChange], commit: Revision) {
    if changes.contains(where: { $0.key == recordKey }) { poke() }
  }

  /// Returns when it is poked, at the end, or when the task is cancelled.
  nonisolated(nonsending) func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.isSet || state.isFinished || Task.isCancelled { return true }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      wake { _ in }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiter = state.withLock { state in
      change(&state)
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}

/// A reader, for as long as it is there.
struct WeakSignal: Sendable {
  weak let signal: KeySignal?
}

extension CachedRepository {
  nonisolated func addReader(_ signal: KeySignal, _ key: Key) {
    state.withLock { $0.readers[key, default: []].append(WeakSignal(signal: signal)) }
  }

  nonisolated func removeReader(_ signal: KeySignal, _ key: Key) {
    state.withLock { state in
      state.readers[key]?.removeAll { $0.signal == nil || $0.signal === signal }
      if state.readers[key]?.isEmpty == true { state.readers[key] = nil }
    }
  }

  /// Wakes the readers of a key, for what storage does not announce.
  nonisolated func poke(_ key: Key) {
    let readers = state.withLock { $0.readers[key]?.compactMap(\.signal) ?? [] }
    for reader in readers { reader.poke() }
  }
}
