internal import Synchronization

/// A source that gathers the keys that wait into requests of several; made by ``BatchRemoteSource/limited(by:)``.
///
/// A ``CachedRepository`` over a ``BatchRemoteSource`` makes one for itself. Make one yourself to set limits, and to
/// share requests among several caches, whose keys and values are then parts of the source's:
///
/// ```swift
/// let gathered = forecasts.limited(by: host)
/// let hourly = try await CachedRepository.open(
///   jsonFile: url, freshness: freshness, source: gathered.mapped(key: { Part.hourly($0) }, value: { try $0.hourly }))
/// ```
///
/// Each key waits until a request may run: as many run at a time as the limits say. The request then takes all keys that wait and may go
/// together, the one that came first and up to ``BatchRemoteSource/maxKeysPerRequest``. See ``FetchGroup`` for keys that must go together.
public final class GatheredSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private typealias Answer = Result<Fetched<Value>, any Error>

  private let source: any BatchRemoteSource<Key, Value>
  private let limits: HostLimits
  private let turns: AsyncSemaphore
  private let weight: @Sendable ([Key]) -> Double
  private let queue: Mutex<GatheringQueue<Key, Value>>

  /// The number of requests that run at a time where the limits do not say.
  private static var defaultConcurrency: Int { 6 }

  init(_ source: any BatchRemoteSource<Key, Value>, limits: HostLimits, weight: @escaping @Sendable ([Key]) -> Double) {
    self.source = source
    self.limits = limits
    self.weight = weight
    turns = limits.concurrency?.semaphore ?? AsyncSemaphore(Self.defaultConcurrency)
    queue = Mutex(GatheringQueue())
  }

  /// The number of keys that wait for a request, and of those in requests that run: for tests.
  var counts: (waiting: Int, running: Int) { queue.withLock { ($0.waiting.count, $0.runningCount) } }

  /// Fetches the value of a key, in one request with others that wait.
  ///
  /// - Throws: What the request throws; the key's own error; ``CacheError/unanswered``; ``CacheError/circuitOpen(until:)`` and
  ///   ``CacheError/quotaExceeded(until:)`` of the limits; `CancellationError` as soon as the task is cancelled.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    try Task.checkCancellation()
    let ticket = FetchTicket.current
    let waiter = OneShot<GatheredAnswer<Value>>()
    let id = queue.withLock { $0.enter(FetchRequest(key: key, validator: validator), ticket?.heldBy, waiter) }
    ticket?.giveUp(at: self)
    startRequests()
    let answer = await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      queue.withLock { $0.leave(id) }?.cancel()
      waiter.resolve(GatheredAnswer(result: .failure(CancellationError()), failure: nil))
    }
    if case .failure = answer.result, let failure = answer.failure { ticket?.note(failure) }
    return try answer.result.get()
  }

}

extension GatheredSource: FetchGathering {
  /// Waits for the turn of another request, if a key may start one and no other is waiting for its turn.
  func startRequests() {
    guard queue.withLock({ $0.mayStart() }) else { return }
    // The request takes its keys when its turn has come: what arrives until then goes with it.
    Task { await takeTurn() }
  }

  private func takeTurn() async {
    // Never cancelled: a cancelled caller takes its key out of the queue, and a turn without keys is given back.
    await turns.acquire()
    defer { turns.release() }
    let batch = queue.withLock { $0.take(source.maxKeysPerRequest, source.canShareRequest) }
    startRequests()
    guard let batch else { return }
    let task = Task { await FetchTicket.$current.withValue(nil) { await request(batch) } }
    if queue.withLock({ $0.note(task, of: batch) }) { task.cancel() }
    await task.value
    startRequests()
  }

  private func request(_ batch: GatheringQueue<Key, Value>.Batch) async {
    let requests = batch.requests
    var answers: [Key: Answer]?
    var failure: (any Error)?
    do {
      try await limits.runAdmitted(weight(requests.map(\.key))) {
        let results = try await source.fetch(requests)
        answers = results
        // The breaker learns from a request of which nothing came.
        if let error = Self.failureOfAll(results, requests) { throw error }
      }
    } catch {
      failure = error
    }
    if let failure, answers == nil, requests.count > 1, (failure as? any RemoteSourceError)?.mayConcernOneKey == true {
      return queue.withLock { $0.divide(batch, failure) }
    }
    let shared = SharedFailure()
    for member in queue.withLock({ $0.end(batch) }) {
      // That a limit did not let half of a request through says less than what came of the whole one.
      if let cause = member.failure, (failure as? CacheError)?.isOfLimits == true {
        member.waiter.resolve(GatheredAnswer(result: .failure(cause), failure: shared))
        continue
      }
      let result: Answer =
        answers.map { $0[member.request.key] ?? .failure(CacheError.unanswered) } ?? .failure(failure ?? CacheError.unanswered)
      member.waiter.resolve(GatheredAnswer(result: result, failure: shared))
    }
  }

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

/// A source whose requests take several keys, so that the keys of one call should be fetched at the same time.
protocol GatheringSource: RemoteSource {
  /// The largest number of keys of one request.
  var maxKeysTogether: Int { get }
}

extension RemoteSource {
  /// Returns a source with keys and values of other types, for a cache of a part of what this one has.
  ///
  /// - Parameters:
  ///   - key: Returns the key of this source for a key of the other; different keys must stay different.
  ///   - value: Returns the other's value of a value of this source; what it throws is the fetch's error.
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
