internal import Synchronization

/// A source that gathers the keys that wait into requests for several keys.
///
/// Made by ``BatchRemoteSource/limited(by:)``.
///
/// A ``CachedRepository`` over a ``BatchRemoteSource`` makes one for itself. Make one yourself to set limits, or to share requests among
/// several caches, whose keys and values are then parts of the source's:
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
    // The permits of the host, which sources of single keys take too.
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
    // After the key was added: giving the place up may start the group's request, which must find the key.
    ticket?.giveUp(at: self)
    startRequests()
    let answer = await withTaskCancellationHandler {
      await waiter.value()
    } onCancel: {
      // Cancels the request if this was its last key. The waiter does not depend on that: a source may ignore the cancellation.
      queue.withLock { $0.removeMember(id) }?.cancel()
      waiter.resolve(GatheredAnswer(result: .failure(CancellationError()), failure: nil))
    }
    if case .failure = answer.result, let failure = answer.failure { ticket?.note(failure) }
    return try answer.result.get()
  }

}

extension GatheredSource: FetchGathering {
  /// Waits for the turn of another request, if a waiting key may start one and no other request waits for its turn.
  func startRequests() {
    guard queue.withLock({ $0.claimStart() }) else { return }
    // The request takes its keys when its turn has come, so that keys that arrive until then go with it.
    Task { await takeTurn() }
  }

  /// Waits for a turn, runs one request in it, and starts the next one.
  private func takeTurn() async {
    // Never cancelled: a cancelled caller removes its key from the queue, and a turn without keys is given back at once.
    await turns.acquire()
    defer { turns.release() }
    let batch = queue.withLock { $0.takeBatch(upTo: source.maxKeysPerRequest, canShare: source.canShareRequest) }
    // Keys may be left that did not fit or could not share, and the next request waits for its turn while this one runs.
    startRequests()
    guard let batch else { return }
    // Without the ticket of the call that happened to start the task: the request belongs to all of its keys.
    let task = Task { await FetchTicket.$current.withValue(nil) { await request(batch) } }
    // All callers may have left between the last two steps.
    if queue.withLock({ $0.setTask(task, of: batch) }) { task.cancel() }
    await task.value
    startRequests()
  }

  /// Sends one request, and gives each of its keys its answer.
  private func request(_ batch: GatheringQueue<Key, Value>.Batch) async {
    let requests = batch.requests
    var answers: [Key: Answer]?
    var failure: (any Error)?
    do {
      try await limits.runAdmitted(weight(requests.map(\.key))) {
        let results = try await source.fetch(requests)
        answers = results
        // For the breaker, a request in which every key failed is a failed request.
        if let error = Self.failureOfAll(results, requests) { throw error }
      }
    } catch {
      failure = error
    }
    // A request with one key cannot be divided, and one with answers has failed for the breaker only.
    if let failure, answers == nil, requests.count > 1, (failure as? any RemoteSourceError)?.mayConcernOneKey == true {
      return queue.withLock { $0.divide(batch, after: failure) }
    }
    let shared = SharedFailure()
    for member in queue.withLock({ $0.endBatch(batch) }) {
      // A limit that refuses one half of a divided request says less than the error of the whole request.
      if let cause = member.failure, (failure as? CacheError)?.isOfLimits == true {
        member.waiter.resolve(GatheredAnswer(result: .failure(cause), failure: shared))
        continue
      }
      let result: Answer =
        answers.map { $0[member.request.key] ?? .failure(CacheError.unanswered) } ?? .failure(failure ?? CacheError.unanswered)
      member.waiter.resolve(GatheredAnswer(result: result, failure: shared))
    }
  }

  /// Returns the first key's error if every key of a request has failed, or `nil`.
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
/// A cache fetches the keys of one call at the same time over such a source.
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
