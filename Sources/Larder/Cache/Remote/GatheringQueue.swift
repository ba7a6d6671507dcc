/// Answer for one key of a request of ``GatheredSource``.
struct GatheredAnswer<Value: Sendable>: Sendable {
  let result: Result<Fetched<Value>, any Error>
  /// Failure that the key shares with the other failed keys of the request, or `nil` for a cancelled key.
  let failure: SharedFailure?
}

/// Queue of a ``GatheredSource``: the keys that wait for a request, and the keys of running requests.
struct GatheringQueue<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Answer = OneShot<GatheredAnswer<Value>>

  /// A key that waits for a request, with its caller.
  struct Member: Sendable {
    let id: UInt64
    let request: FetchRequest<Key>
    let group: FetchGroupMembers?
    let waiter: Answer
    /// Number of the half of a divided request that the key belongs to, or `nil` if the key may join any request.
    var part: UInt64?
    /// Error of the divided request that had this key, or `nil` if no request with the key was divided.
    var failure: (any Error)?

    /// True if a request may begin with this key, because the key belongs to no group or to a complete one.
    var mayStart: Bool { group?.isComplete ?? true }
  }

  /// The keys of one request, with their callers.
  struct Batch: Sendable {
    let id: UInt64
    let members: [Member]

    /// The keys of the request without duplicates, because two caches may request the same key at the same time.
    var requests: [FetchRequest<Key>] {
      var keys: Set<Key> = []
      return members.map(\.request).filter { keys.insert($0.key).inserted }
    }
  }

  /// A request that was taken out of the queue and has not ended.
  private struct Running: Sendable {
    /// Numbers of the members (keys with their callers) whose callers still wait for the request.
    var waiting: Set<UInt64>
    var task: Task<Void, Never>?
  }

  private(set) var waiting: [Member] = []
  private var running: [UInt64: Running] = [:]
  /// True while a task waits for a permit to run the next request.
  private var isStarting = false
  private var last: UInt64 = 0

  var runningCount: Int { running.values.reduce(0) { $0 + $1.waiting.count } }

  private mutating func nextNumber() -> UInt64 {
    last += 1
    return last
  }

  /// Adds a key with its caller to the queue, and returns the number under which the queue keeps them.
  mutating func add(_ request: FetchRequest<Key>, group: FetchGroupMembers?, waiter: Answer) -> UInt64 {
    let id = nextNumber()
    waiting.append(Member(id: id, request: request, group: group, waiter: waiter))
    return id
  }

  /// Returns true if the caller must start the next request.
  ///
  /// After a result of `true`, every call of `claimStart()` returns `false` until ``takeBatch(upTo:canShare:)`` has taken the keys of that
  /// request.
  mutating func claimStart() -> Bool {
    guard !isStarting, waiting.contains(where: \.mayStart) else { return false }
    isStarting = true
    return true
  }

  /// Takes the keys of the next request out of the queue: the first key that may start, and the keys that may share its request.
  ///
  /// A key of an incomplete ``FetchGroup`` joins the request only if another caller in the request has the same key and validator. If any
  /// key of an incomplete group could join, the remaining keys of the group would need a further request.
  mutating func takeBatch(upTo limit: Int, canShare: (Key, Key) -> Bool) -> Batch? {
    isStarting = false
    guard let first = waiting.first(where: \.mayStart) else { return nil }
    var (members, rest): ([Member], [Member]) = ([first], [])
    var requests = [first.request.key: first.request.validator]
    for member in waiting where member.id != first.id {
      let request = member.request
      // A request carries one validator for each key. A caller with the same key and another validator waits for a later request.
      let isSame = requests[request.key].map { $0 == request.validator }
      // After a request was divided, a key shares a request only with keys of its own half. If keys of both halves could share a request,
      // the key that made the divided request fail could be requested with the same keys again.
      let joins = requests.count < limit && member.part == first.part && member.mayStart && canShare(first.request.key, request.key)
      if isSame ?? joins {
        requests[request.key] = request.validator
        members.append(member)
      } else {
        rest.append(member)
      }
    }
    waiting = rest
    let batch = Batch(id: nextNumber(), members: members)
    running[batch.id] = Running(waiting: Set(members.map(\.id)))
    return batch
  }

  /// Keeps the task of a request, and returns true if no caller waits for the request any more.
  mutating func setTask(_ task: Task<Void, Never>, of batch: Batch) -> Bool {
    running[batch.id]?.task = task
    return running[batch.id]?.waiting.isEmpty ?? false
  }

  /// Removes a key whose caller was cancelled.
  ///
  /// Returns the task of the running request with the key, if no other caller waits for that request.
  mutating func removeMember(_ id: UInt64) -> Task<Void, Never>? {
    waiting.removeAll { $0.id == id }
    // A linear search is enough, because few requests run at a time.
    guard let batch = running.first(where: { $0.value.waiting.contains(id) })?.key else { return nil }
    running[batch]?.waiting.remove(id)
    return running[batch]?.waiting.isEmpty == true ? running[batch]?.task : nil
  }

  /// Ends a request, and returns its members (keys with their callers) whose callers still wait for an answer.
  mutating func endBatch(_ batch: Batch) -> [Member] {
    // Keys of cancelled callers are left out, because these callers have been resumed with an error already.
    let left = running.removeValue(forKey: batch.id)?.waiting ?? []
    return batch.members.filter { left.contains($0.id) }
  }

  /// Ends a request that failed as a whole, and queues its keys for two requests of half of the keys each.
  ///
  /// The halves are queued before all keys that were not requested yet, and behind the halves of other requests. If one bad key makes
  /// requests fail, this order mixes halves that succeed with halves that fail. The circuit breaker, which opens after several failures in
  /// a row, is then less likely to open because of one bad key.
  mutating func divide(_ batch: Batch, after failure: any Error) {
    var members = endBatch(batch)
    var keys: [Key: Int] = [:]
    // Distinct keys are counted, so that two callers with the same key stay in one half of the request.
    for member in members where keys[member.request.key] == nil { keys[member.request.key] = keys.count }
    let (first, second) = (nextNumber(), nextNumber())
    for position in members.indices {
      members[position].part = keys[members[position].request.key, default: 0] < (keys.count + 1) / 2 ? first : second
      members[position].failure = failure
    }
    waiting.insert(contentsOf: members, at: waiting.prefix { $0.part != nil }.count)
  }
}
