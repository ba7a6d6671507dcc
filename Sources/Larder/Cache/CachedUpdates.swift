internal import Synchronization

/// A sequence of the values of one key: the current one, then one for each change of the value or its state.
///
/// Get it from ``CachedRepository/updates(for:)``.
public struct CachedUpdates<Value: Sendable>: AsyncSequence, Sendable {
  /// The value with its age and state.
  public typealias Element = Cached<Value>
  /// No failure, since a value that cannot be read counts as missing.
  public typealias Failure = Never

  /// The next answer of one reader for each call.
  ///
  /// A closure, so that the sequence does not depend on the type of the key.
  typealias Answers = @Sendable () async -> Cached<Value>?

  private let makeReader: @Sendable () -> Answers

  init(_ makeReader: @escaping @Sendable () -> Answers) { self.makeReader = makeReader }

  /// Begins with the current value, unless it has expired or is missing.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(answers: makeReader()) }

  /// An iterator that returns one answer after the other to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The value with its age and state.
    public typealias Element = Cached<Value>
    /// No failure.
    public typealias Failure = Never

    let answers: Answers

    /// Returns the next answer when there is one, or `nil` once the storage is closed or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Cached<Value>? {
      await answers()
    }
  }
}

/// One reader of the updates of one key.
///
/// It keeps only the version and the state that it returned last, and looks the key up for each call.
final class CachedReader<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The version and state of the last answer.
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
      // Read before the lookup, or a commit between the lookup and the wait would go unnoticed.
      let moment = signal.moment
      let lookup = cache.lookup(key)
      guard let cached = lookup.cached() else {
        // A value that is stored again after its removal is news.
        told.withLock { $0 = nil }
        await wait(nil, after: moment)
        continue
      }
      let now = Told(version: lookup.version, state: cached.state)
      let isNew = told.withLock { told in
        // An expired value is news only to a reader that received it before it expired.
        if cached.state == .expired, told == nil { return false }
        defer { told = now }
        return told != now
      }
      if isNew { return cached }
      await wait(lookup.entry?.timeUntilNextState(at: lookup.uptime), after: moment)
    }
    return nil
  }

  /// Waits until an entry of the key is stored, or until its state changes after `time`.
  private func wait(_ time: Duration?, after moment: Signal.Moment) async {
    let timer = time.map { [signal] in cache.clock.after($0) { signal.raise() } }
    await signal.wait(after: moment)
    timer?.cancel()
  }
}

extension CachedRepository {
  /// Wakes the readers of a key after a change that is no commit, such as an unsaved entry.
  nonisolated func wakeReaders(of key: Key) { announcements.wake(recordKey(of: key)) }

  /// Returns the key of the record for a cache's key, or `nil` for a key that cannot be encoded as one.
  nonisolated func recordKey(of key: Key) -> RecordKey? {
    do throws(RepositoryError) { return try storage.coder.keys.key(for: key) } catch { return nil }
  }
}

/// Observer of the commits to a cache's collection, which wakes the readers of the changed keys.
///
/// All readers share one observer, so adding, removing and waking a reader costs the same however many there are.
final class KeyAnnouncements: ChangeObserver {
  private struct State: Sendable {
    /// Signals of the readers by record.
    ///
    /// Under `nil` are readers of keys that cannot be stored.
    var signals: [RecordKey?: [ObjectIdentifier: WeakSignal]] = [:]
    var isFinished = false
    var wokenCount = 0

    func signals(of key: RecordKey?) -> [Signal] { signals[key]?.values.compactMap(\.signal) ?? [] }
  }

  private let state = Mutex(State())

  /// Number of readers, for tests.
  var count: Int { state.withLock { $0.signals.values.reduce(0) { $0 + $1.count } } }
  /// Number of readers that commits have woken, for tests.
  var wokenCount: Int { state.withLock { $0.wokenCount } }

  func add(_ signal: Signal, _ key: RecordKey?) {
    let isFinished = state.withLock { state in
      state.signals[key, default: [:]][ObjectIdentifier(signal)] = WeakSignal(signal: signal)
      return state.isFinished
    }
    // A reader that comes after the end would wait forever.
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
      // Nearly always: most caches have no reader, and each commit comes here.
      guard !state.signals.isEmpty else { return [] }
      let concerned = changes.flatMap { state.signals(of: $0.key) }
      state.wokenCount += concerned.count
      return concerned
    }
    // Outside the lock, so that resuming many readers blocks no other reader.
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

/// A reader's signal, which goes with the reader.
struct WeakSignal: Sendable {
  weak let signal: Signal?
}
