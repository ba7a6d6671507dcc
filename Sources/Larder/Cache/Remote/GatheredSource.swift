internal import Synchronization

/// A source that gathers waiting keys into requests for several keys.
///
/// Get a `GatheredSource` from ``BatchRemoteSource/limited(by:)``.
///
/// A ``CachedRepository`` over a ``BatchRemoteSource`` makes a `GatheredSource` for itself. Make a `GatheredSource` yourself to set limits,
/// or to share requests among several caches, each of which uses a part of the source's keys and values:
///
/// ```swift
/// let gathered = forecasts.limited(by: host)
/// let hourly = try await CachedRepository.open(
///   jsonFile: url, freshness: freshness, source: gathered.mapped(key: { Part.hourly($0) }, value: { try $0.hourly }))
/// ```
///
/// Each key waits until the limits let a request run. The request takes the key that came first, and all waiting keys that may share a
/// request with that key, up to ``BatchRemoteSource/maxKeysPerRequest``. Use a ``FetchGroup`` for keys that must share a request.
public final class GatheredSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private typealias Answer = Result<Fetched<Value>, any Error>

  private let source: any BatchRemoteSource<Key, Value>
  private let limits: HostLimits
  private let turns: AsyncSemaphore
  private let weight: @Sendable ([Key]) -> Double
  private let queue: Mutex<GatheringQueue<Key, Value>>

  /// Number of requests that run at a time if the host has no concurrency limit.
  private static var defaultConcurrency: Int { 6 }

  init(_ source: any BatchRemoteSource<Key, Value>, limits: HostLimits, weight: @escaping @Sendable ([Key]) -> Double) {
    self.source = source
    self.limits = limits
    self.weight = weight
    // Requests for several keys take permits of the host's concurrency limit, as requests of other sources for single keys do.
    turns = limits.concurrency?.semaphore ?? AsyncSemaphore(Self.defaultConcurrency)
    queue = Mutex(GatheringQueue())
  }

  /// Numbers of keys that wait for a request, and of keys in running requests, for tests.
  var counts: (waiting: Int, running: Int) { queue.withLock { ($0.waiting.count, $0.runningCount) } }

  /// Fetches the value of a key, in one request with other keys that wait.
  ///
  /// - Throws: The error of the request or of the key, ``CacheError/unanswered``, or an error of the limits:
  ///   ``CacheError/circuitOpen(until:)`` or ``CacheError/quotaExceeded(until:)``. `CancellationError` as soon as the calling task is
  ///   cancelled.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    try Task.checkCancellation()
    let ticket = FetchTicket.current
    let waiter = OneShot<GatheredAnswer<Value>>()
    let id = queue.withLock { $0.add(FetchRequest(key: key, validator: validator), group: ticket?.heldBy, waiter: waiter) }
    // The ticket of the ``FetchGroup`` is given up after the key was added to the queue. Giving up a ticket may start the request of its
    // ``FetchGroup``, which must find the key in the queue.
    ticket?.giveUp(at: self)
    startRequests()
    let answer = await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      // If no other key of the request has a caller, the request is cancelled. The cancelled caller is resumed in any case, because a
      // source may ignore the cancellation.
      queue.withLock { $0.removeMember(id) }?.cancel()
      waiter.resolve(GatheredAnswer(result: .failure(CancellationError()), failure: nil))
    }
    if case .failure = answer.result, let failure = answer.failure { ticket?.note(failure) }
    return try answer.result.get()
  }

}

extension GatheredSource: FetchGathering {
  /// Starts a task for the next request, if a waiting key may start a request and no other task waits for a permit.
  func startRequests() {
    guard queue.withLock({ $0.claimStart() }) else { return }
    // The request takes its keys from the queue when it has a permit, so that keys which arrive during the wait for the permit join the
    // request.
    Task { await takeTurn() }
  }

  /// Waits for a permit of the concurrency limit, runs one request with the permit, and starts the task of the next request.
  private func takeTurn() async {
    // The wait for a permit is never cancelled. A cancelled caller removes its key from the queue, and a permit
    // without waiting keys is released at once.
    await turns.acquire()
    defer { turns.release() }
    let batch = queue.withLock { $0.takeBatch(upTo: source.maxKeysPerRequest, canShare: source.canShareRequest) }
    // Some waiting keys may not have fitted into this request. The next request waits for its permit while this request runs.
    startRequests()
    guard let batch else { return }
    // The task of the request inherits the task-local `FetchTicket` of the one call that started it. The `FetchTicket` is cleared, because
    // the request belongs to all of its keys.
    let task = Task { await FetchTicket.$current.withValue(nil) { await request(batch) } }
    // If all callers left before `setTask`, none of them could cancel the task of the request, so this line cancels the task.
    if queue.withLock({ $0.setTask(task, of: batch) }) { task.cancel() }
    await task.value
    startRequests()
  }

  /// Sends one request, and resumes the callers of its keys, or queues the keys for two smaller requests.
  private func request(_ batch: GatheringQueue<Key, Value>.Batch) async {
    let requests = batch.requests
    var answers: [Key: Answer]?
    var failure: (any Error)?
    do {
      try await limits.runAdmitted(weight(requests.map(\.key))) {
        let results = try await source.fetch(requests)
        answers = results
        // The circuit breaker counts a request in which every key failed as a failed request, so the first error is thrown to the breaker.
        if let error = Self.failureOfAll(results, requests) { throw error }
      }
    } catch {
      failure = error
    }
    // A request with one key cannot be divided. A request whose keys have answers has failed for the circuit breaker only, and each key
    // gets its answer.
    if let failure, answers == nil, requests.count > 1, (failure as? any RemoteSourceError)?.mayConcernOneKey == true {
      return queue.withLock { $0.divide(batch, after: failure) }
    }
    let shared = SharedFailure()
    for member in queue.withLock({ $0.endBatch(batch) }) {
      // If the limits refuse one half of a divided request, its keys get the error of the whole request, which names the cause.
      if let cause = member.failure, (failure as? CacheError)?.isOfLimits == true {
        member.waiter.resolve(GatheredAnswer(result: .failure(cause), failure: shared))
        continue
      }
      let result: Answer =
        answers.map { $0[member.request.key] ?? .failure(CacheError.unanswered) } ?? .failure(failure ?? CacheError.unanswered)
      member.waiter.resolve(GatheredAnswer(result: result, failure: shared))
    }
  }

  /// Returns the error of the first key if every key of a request has failed, or `nil`.
  private static func failureOfAll(_ answers: [Key: Answer], _ requests: [FetchRequest<Key>]) -> (any Error)? {
    var first: (any Error)?
    for request in requests {
      guard case .failure(let error)? = answers[request.key] else { return nil }
      first = first ?? error
    }
    return first
  }
}

extension GatheredSource: GatheringSource {
  var maxKeysTogether: Int { max(source.maxKeysPerRequest, 1) }
}

/// A source that can fetch several keys in one request.
///
/// A cache over a `GatheringSource` fetches the keys of one call at the same time, so that they share requests.
protocol GatheringSource: RemoteSource {
  /// Largest number of keys in one request.
  var maxKeysTogether: Int { get }
}

extension RemoteSource {
  /// Returns a source with other types of keys and values, for a cache of a part of this source's values.
  ///
  /// - Parameters:
  ///   - key: Returns this source's key for a key of the new source. Different keys of the new source must give different keys of this
  ///     source.
  ///   - value: Returns the new source's value for a value of this source. An error that the closure throws is the error of the fetch.
  public func mapped<OtherKey, OtherValue>(
    key: @escaping @Sendable (OtherKey) -> Key, value: @escaping @Sendable (Value) throws -> OtherValue
  ) -> some RemoteSource<OtherKey, OtherValue> where OtherKey: Hashable & Codable & Sendable, OtherValue: Codable & Sendable {
    MappedSource(source: self, key: key, value: value)
  }
}

private struct MappedSource<Source: RemoteSource, Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  let source: Source
  let key: @Sendable (Key) -> Source.Key
  let value: @Sendable (Source.Value) throws -> Value

  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    switch try await source.fetch(self.key(key), validator: validator) {
    case .value(let value, let validator, let freshUntil): .value(try self.value(value), validator: validator, freshUntil: freshUntil)
    case .notModified(let freshUntil): .notModified(freshUntil: freshUntil)
    case .absent(let reason, let lifetime): .absent(reason: reason, lifetime: lifetime)
    }
  }
}

extension MappedSource: GatheringSource where Source: GatheringSource {
  var maxKeysTogether: Int { source.maxKeysTogether }
}
