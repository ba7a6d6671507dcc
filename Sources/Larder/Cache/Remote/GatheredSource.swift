internal import Synchronization

/// A source that gathers the keys that wait into requests for several keys.
///
/// Get one from ``BatchRemoteSource/limited(by:)``.
///
/// A ``CachedRepository`` over a ``BatchRemoteSource`` makes a `GatheredSource` for itself. Make one yourself to set limits, or to share
/// requests among several caches, whose keys and values are then parts of the source's:
///
/// ```swift
/// let gathered = forecasts.limited(by: host)
/// let hourly = try await CachedRepository.open(
///   jsonFile: url, freshness: freshness, source: gathered.mapped(key: { Part.hourly($0) }, value: { try $0.hourly }))
/// ```
///
/// Each key waits until the limits let a request run. The request then takes the key that came first, and all waiting keys that may share a
/// request with it, up to ``BatchRemoteSource/maxKeysPerRequest``. Use a ``FetchGroup`` for keys that must go together.
public final class GatheredSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private typealias Answer = Result<Fetched<Value>, any Error>

  private let source: any BatchRemoteSource<Key, Value>
  private let limits: HostLimits
  private let turns: AsyncSemaphore
  private let weight: @Sendable ([Key]) -> Double
  private let queue: Mutex<GatheringQueue<Key, Value>>

  /// Number of requests that run at a time without a limit of concurrency.
  private static var defaultConcurrency: Int { 6 }

  init(_ source: any BatchRemoteSource<Key, Value>, limits: HostLimits, weight: @escaping @Sendable ([Key]) -> Double) {
    self.source = source
    self.limits = limits
    self.weight = weight
    // The requests take the permits of the host's concurrency limit, which sources of single keys take too.
    turns = limits.concurrency?.semaphore ?? AsyncSemaphore(Self.defaultConcurrency)
    queue = Mutex(GatheringQueue())
  }

  /// Numbers of keys that wait for a request, and of keys in running requests, for tests.
  var counts: (waiting: Int, running: Int) { queue.withLock { ($0.waiting.count, $0.runningCount) } }

  /// Fetches the value of a key, in one request with other keys that wait.
  ///
  /// - Throws: The error of the request or of the key, ``CacheError/unanswered``, or an error of the limits:
  ///   ``CacheError/circuitOpen(until:)`` or ``CacheError/quotaExceeded(until:)``. `CancellationError` as soon as the task is cancelled.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    try Task.checkCancellation()
    let ticket = FetchTicket.current
    let waiter = OneShot<GatheredAnswer<Value>>()
    let id = queue.withLock { $0.add(FetchRequest(key: key, validator: validator), group: ticket?.heldBy, waiter: waiter) }
    // The ticket is given up after the key was added, because that may start the request of the group, which must find the key.
    ticket?.giveUp(at: self)
    startRequests()
    let answer = await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      // If no other key of the request has a caller, the request is cancelled. The caller is resumed in any case, because a source may
      // ignore the cancellation.
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
    // The request takes its keys when its turn comes, so that keys that arrive during the wait go with it.
    Task { await takeTurn() }
  }

  /// Waits for a permit of `turns`, runs one request with it, and starts the task of the next request.
  private func takeTurn() async {
    // The wait for a permit is never cancelled. A cancelled caller removes its key from the queue, and a permit
    // without waiting keys is released at once.
    await turns.acquire()
    defer { turns.release() }
    let batch = queue.withLock { $0.takeBatch(upTo: source.maxKeysPerRequest, canShare: source.canShareRequest) }
    // Some waiting keys may not have fitted into this request. The next request waits for its turn while this one runs.
    startRequests()
    guard let batch else { return }
    // The task inherits the ticket of the call that happened to start it. The ticket is cleared, because the request belongs to all of its
    // keys.
    let task = Task { await FetchTicket.$current.withValue(nil) { await request(batch) } }
    // If all callers left before `setTask`, none of them could cancel the task, so it is cancelled here.
    if queue.withLock({ $0.setTask(task, of: batch) }) { task.cancel() }
    await task.value
    startRequests()
  }

  /// Sends one request, and resolves the waiter of each of its keys.
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
    // A request with one key cannot be divided. A request with answers has failed for the circuit breaker only, and each key has its
    // answer.
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

/// A source whose requests take several keys.
///
/// Over such a source, a cache fetches the keys of one call at the same time, so that they share requests.
protocol GatheringSource: RemoteSource {
  /// Largest number of keys in one request.
  var maxKeysTogether: Int { get }
}

extension RemoteSource {
  /// Returns a source with other types of keys and values, for a cache of a part of this source's values.
  ///
  /// - Parameters:
  ///   - key: Returns this source's key for a key of the new source. Different keys must stay different.
  ///   - value: Returns the new source's value for a value of this source. An error that it throws is the error of the fetch.
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
