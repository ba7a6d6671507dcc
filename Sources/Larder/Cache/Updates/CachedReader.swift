internal import Synchronization

/// One reader of the updates of one key.
///
/// It keeps nothing but what it has told last: what is new is looked up when it is asked for.
final class CachedReader<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  private struct Told: Equatable {
    let version: EntryVersion
    let state: Cached<Value>.State
  }

  private let cache: CachedRepository<Key, Value>
  private let key: Key
  private let recordKey: RecordKey?
  private let signal = Signal()
  private let told = Mutex<Told?>(nil)

  init(_ cache: CachedRepository<Key, Value>, _ key: Key) {
    self.cache = cache
    self.key = key
    recordKey = cache.recordKey(of: key)
    cache.announcements.add(signal, recordKey)
  }

  deinit { cache.announcements.remove(signal, recordKey) }

  func next() async -> Cached<Value>? {
    while !Task.isCancelled, !signal.isFinished {
      let moment = signal.moment
      let lookup = cache.lookup(key)
      guard let cached = lookup.cached() else {
        told.withLock { $0 = nil }
        await wait(nil, after: moment)
        continue
      }
      let now = Told(version: lookup.version, state: cached.state)
      let isNew = told.withLock { told in
        // An expired value is news only to a reader that was shown it before.
        if cached.state == .expired, told == nil { return false }
        defer { told = now }
        return told != now
      }
      if isNew { return cached }
      await wait(lookup.entry?.timeUntilNextState(at: lookup.uptime), after: moment)
    }
    return nil
  }

  /// Waits until something was stored, or the time has come.
  private func wait(_ time: Duration?, after moment: Signal.Moment) async {
    let timer = time.map { [signal] in cache.clock.after($0) { signal.raise() } }
    await signal.wait(after: moment)
    timer?.cancel()
  }
}

extension CachedRepository {
  /// Wakes the readers of a key, for what storage does not announce.
  nonisolated func wakeReaders(of key: Key) { announcements.wake(recordKey(of: key)) }

  /// Returns the key of the record that a value is stored in, or would be; `nil` for a key that cannot be a record's.
  nonisolated func recordKey(of key: Key) -> RecordKey? {
    do throws(RepositoryError) { return try storage.coder.keys.key(for: key) } catch { return nil }
  }
}
