internal import Synchronization

/// A sequence of answers for one key: the current answer, then a new answer after each change of the value or its state.
///
/// ``CachedRepository/updates(for:)`` returns a `CachedUpdates`.
public struct CachedUpdates<Value: Sendable>: AsyncSequence, Sendable {
  /// The value with its age and state.
  public typealias Element = Cached<Value>
  /// The sequence never throws, since a value that cannot be read counts as missing.
  public typealias Failure = Never

  /// A function that returns the next answer of one reader at each call.
  ///
  /// A closure hides the reader, so that the type of the sequence does not depend on the type of the key.
  typealias Answers = @Sendable () async -> Cached<Value>?

  private let makeReader: @Sendable () -> Answers

  init(_ makeReader: @escaping @Sendable () -> Answers) { self.makeReader = makeReader }

  /// Returns an iterator that begins with the current value, unless the value is missing or has expired.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(answers: makeReader()) }

  /// An iterator over the answers for one key, for one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The value with its age and state.
    public typealias Element = Cached<Value>
    /// The iterator never throws, since a value that cannot be read counts as missing.
    public typealias Failure = Never

    let answers: Answers

    /// Waits for the next answer and returns it, or returns `nil` once the storage is closed or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Cached<Value>? {
      await answers()
    }
  }
}

/// One reader of the sequence of updates of one key.
///
/// A reader keeps only the version and the state of its last answer, and looks the key up again for each call of `next`.
final class CachedReader<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The entry version and the freshness state of the reader's last answer.
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
      // The signal's moment is read before the lookup. If the moment were read after the lookup, a commit between the lookup and the wait
      // would not end the wait.
      let moment = signal.moment
      let lookup = cache.lookup(key)
      guard let cached = lookup.cached() else {
        // The key has no value now. `told` is set to `nil`, so that the next value of the key counts as new.
        told.withLock { $0 = nil }
        await wait(nil, after: moment)
        continue
      }
      let now = Told(version: lookup.version, state: cached.state)
      let isNew = told.withLock { told in
        // A reader gets an expired value only if it has received a value of the key before.
        if cached.state == .expired, told == nil { return false }
        defer { told = now }
        return told != now
      }
      if isNew { return cached }
      await wait(lookup.entry?.timeUntilNextState(at: lookup.uptime), after: moment)
    }
    return nil
  }

  /// Waits until an entry of the key is stored, or until the duration `time` has passed, after which the entry's state changes.
  private func wait(_ time: Duration?, after moment: Signal.Moment) async {
    let timer = time.map { [signal] in cache.clock.after($0) { signal.raise() } }
    await signal.wait(after: moment)
    timer?.cancel()
  }
}

extension CachedRepository {
  /// Wakes the readers of a key after a change that is no commit, such as an unsaved entry.
  nonisolated func wakeReaders(of key: Key) { announcements.wake(recordKey(of: key)) }

  /// Returns the key of the stored record for a key of the cache, or `nil` for a key that cannot be encoded as a record key.
  nonisolated func recordKey(of key: Key) -> RecordKey? {
    do throws(RepositoryError) { return try storage.coder.keys.key(for: key) } catch { return nil }
  }
}

/// Observer of the commits to a cache's collection, which wakes the readers of the changed keys.
///
/// All readers share one observer, so the cost of adding, removing or waking a reader does not depend on the number of readers.
final class KeyAnnouncements: ChangeObserver {
  private struct State: Sendable {
    /// Signals of the readers of a cache, by the record key of the value that they read.
    ///
    /// The entry for `nil` holds the readers of keys that cannot be stored.
    var signals: [RecordKey?: [ObjectIdentifier: WeakSignal]] = [:]
    var isFinished = false
    var wokenCount = 0

    func signals(of key: RecordKey?) -> [Signal] { signals[key]?.values.compactMap(\.signal) ?? [] }
  }

  private let state = Mutex(State())

  /// Number of readers of ``CachedRepository/updates(for:)``, for tests.
  var count: Int { state.withLock { $0.signals.values.reduce(0) { $0 + $1.count } } }
  /// Number of readers that commits have woken, for tests.
  var wokenCount: Int { state.withLock { $0.wokenCount } }

  func add(_ signal: Signal, _ key: RecordKey?) {
    let isFinished = state.withLock { state in
      state.signals[key, default: [:]][ObjectIdentifier(signal)] = WeakSignal(signal: signal)
      return state.isFinished
    }
    // The signal of a reader that is added after the store was closed is finished at once, because no event would wake the reader.
    if isFinished { signal.finish() }
  }

  func remove(_ signal: Signal, _ key: RecordKey?) {
    state.withLock { state in
      state.signals[key]?[ObjectIdentifier(signal)] = nil
      if state.signals[key]?.isEmpty == true { state.signals[key] = nil }
    }
  }

  /// Wakes the readers of a key, so that they look the key up again.
  func wake(_ key: RecordKey?) {
    for signal in state.withLock({ $0.signals(of: key) }) { signal.raise() }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    let concerned = state.withLock { state -> [Signal] in
      // Each commit calls `receive`, and most caches have no reader, so `receive` returns early if there is none.
      guard !state.signals.isEmpty else { return [] }
      let concerned = changes.flatMap { state.signals(of: $0.key) }
      state.wokenCount += concerned.count
      return concerned
    }
    // The signals are raised outside the lock of `state`, so that resuming many readers blocks no other reader.
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

/// A weak reference to a reader's signal, so that the cache does not keep the signal in memory when the reader is gone.
struct WeakSignal: Sendable {
  weak let signal: Signal?
}
