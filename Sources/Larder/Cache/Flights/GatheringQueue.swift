/// The answer for one key of a request.
struct GatheredAnswer<Value: Sendable>: Sendable {
  let result: Result<Fetched<Value>, any Error>
  /// The failure that the key shares with those of the request that have failed too; `nil` for a cancelled key.
  let failure: SharedFailure?
}

/// The keys that wait for a request of ``GatheredSource``, and those of the requests that run.
struct GatheringQueue<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Answer = OneShot<GatheredAnswer<Value>>

  /// A key that a caller waits for.
  struct Member: Sendable {
    let id: UInt64
    let request: FetchRequest<Key>
    let group: FetchGroupMembers?
    let waiter: Answer
    /// The half of a failed request that the key goes with; `nil` for any request.
    var part: UInt64?
    /// The failure of the request that was divided.
    var failure: (any Error)?

    /// Whether a request may begin with it.
    var mayStart: Bool { group?.isComplete ?? true }
  }

  /// The keys of one request.
  struct Batch: Sendable {
    let id: UInt64
    let members: [Member]

    /// Each key once: two caches may want the same one.
    var requests: [FetchRequest<Key>] {
      var keys: Set<Key> = []
      return members.map(\.request).filter { keys.insert($0.key).inserted }
    }
  }

  private struct Running: Sendable {
    /// The members that still wait for it.
    var waiting: Set<UInt64>
    var task: Task<Void, Never>?
  }

  private(set) var waiting: [Member] = []
  private var running: [UInt64: Running] = [:]
  /// Whether the next request waits for its turn.
  private var isStarting = false
  private var last: UInt64 = 0

  var runningCount: Int { running.values.reduce(0) { $0 + $1.waiting.count } }

  private mutating func number() -> UInt64 {
    last += 1
    return last
  }

  /// Adds a key, and returns the number of its member.
  mutating func enter(_ request: FetchRequest<Key>, _ group: FetchGroupMembers?, _ waiter: Answer) -> UInt64 {
    let id = number()
    waiting.append(Member(id: id, request: request, group: group, waiter: waiter))
    return id
  }

  /// Returns whether the caller is to wait for the turn of another request.
  mutating func mayStart() -> Bool {
    guard !isStarting, waiting.contains(where: \.mayStart) else { return false }
    isStarting = true
    return true
  }

  /// Takes out the keys of the next request: the first that may start, and those that may start with it.
  ///
  /// A key of a group that is not complete joins only if the request has its key anyway: taken for another, it would leave the rest of
  /// its group a request too many.
  mutating func take(_ limit: Int, _ canShare: (Key, Key) -> Bool) -> Batch? {
    isStarting = false
    guard let first = waiting.first(where: \.mayStart) else { return nil }
    var (members, rest): ([Member], [Member]) = ([first], [])
    var requests = [first.request.key: first.request.validator]
    for member in waiting where member.id != first.id {
      let request = member.request
      let isSame = requests[request.key].map { $0 == request.validator }
      let joins = requests.count < limit && member.part == first.part && member.mayStart && canShare(first.request.key, request.key)
      if isSame ?? joins {
        requests[request.key] = request.validator
        members.append(member)
      } else {
        rest.append(member)
      }
    }
    waiting = rest
    let batch = Batch(id: number(), members: members)
    running[batch.id] = Running(waiting: Set(members.map(\.id)))
    return batch
  }

  /// Notes the task of a request, and returns whether it has no member left.
  mutating func note(_ task: Task<Void, Never>, of batch: Batch) -> Bool {
    running[batch.id]?.task = task
    return running[batch.id]?.waiting.isEmpty ?? false
  }

  /// Removes a cancelled member, and returns the task of its request if that has no member left.
  mutating func leave(_ id: UInt64) -> Task<Void, Never>? {
    waiting.removeAll { $0.id == id }
    guard let batch = running.first(where: { $0.value.waiting.contains(id) })?.key else { return nil }
    running[batch]?.waiting.remove(id)
    return running[batch]?.waiting.isEmpty == true ? running[batch]?.task : nil
  }

  /// Ends a request, and returns the members that still wait for it.
  mutating func end(_ batch: Batch) -> [Member] {
    let left = running.removeValue(forKey: batch.id)?.waiting ?? []
    return batch.members.filter { left.contains($0.id) }
  }

  /// Ends a request that failed as a whole, and lets its keys wait again for two requests of half of them each.
  ///
  /// They wait before all keys that were not asked for yet, and behind the halves of other requests: a half that is answered then comes
  /// between two that are not, so that one bad key does not look like a host that is down.
  mutating func divide(_ batch: Batch, _ failure: any Error) {
    var members = end(batch)
    var keys: [Key: Int] = [:]
    for member in members where keys[member.request.key] == nil { keys[member.request.key] = keys.count }
    let (first, second) = (number(), number())
    for position in members.indices {
      members[position].part = keys[members[position].request.key, default: 0] < (keys.count + 1) / 2 ? first : second
      members[position].failure = failure
    }
    waiting.insert(contentsOf: members, at: waiting.prefix { $0.part != nil }.count)
  }
}
