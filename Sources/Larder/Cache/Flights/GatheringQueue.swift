/// The answer for one key of a request.
struct GatheredAnswer<Value: Sendable>: Sendable {
  let result: Result<Fetched<Value>, any Error>
  /// The failure, if the key has failed; shared with the others of the request.
  let failure: SharedFailure?
}

/// The keys that wait for a request of ``GatheredSource``, and those of the requests that run.
struct GatheringQueue<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  typealias Answer = Waiter<GatheredAnswer<Value>>

  /// A key for which somebody waits.
  struct Member: Sendable {
    let id: UInt64
    let request: FetchRequest<Key>
    let group: FetchGroupMembers?
    let waiter: Answer
    /// The half of a failed request that the key goes with; `nil` for any request.
    var part: UInt64?

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
    /// Those who still wait for it.
    var waiting: Set<UInt64>
    var task: Task<Void, Never>?
  }

  private(set) var waiting: [Member] = []
  private var running: [UInt64: Running] = [:]
  /// Those who wait for a request that runs.
  private var asked: [UInt64: (member: Member, batch: UInt64)] = [:]
  /// Whether the next request waits for its turn.
  private var isStarting = false
  private var last: UInt64 = 0

  var runningCount: Int { asked.count }

  private mutating func number() -> UInt64 {
    last += 1
    return last
  }

  /// Adds a key, and returns the number of who waits for it.
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

  mutating func endStart() { isStarting = false }

  /// Takes out the keys of the next request: the first that may start, and what goes with it.
  mutating func take(_ limit: Int, _ canShare: (Key, Key) -> Bool) -> Batch? {
    endStart()
    guard let first = waiting.first(where: \.mayStart) else { return nil }
    var (members, rest): ([Member], [Member]) = ([first], [])
    var requests = [first.request.key: first.request.validator]
    for member in waiting where member.id != first.id {
      let request = member.request
      let isSame = requests[request.key].map { $0 == request.validator }
      if isSame == true || isSame == nil && requests.count < limit && member.part == first.part && canShare(first.request.key, request.key)
      {
        requests[request.key] = request.validator
        members.append(member)
      } else {
        rest.append(member)
      }
    }
    waiting = rest
    let batch = Batch(id: number(), members: members)
    running[batch.id] = Running(waiting: Set(members.map(\.id)))
    for member in members { asked[member.id] = (member, batch.id) }
    return batch
  }

  /// Notes the task of a request, and returns whether nobody waits for it any more.
  mutating func note(_ task: Task<Void, Never>, of batch: Batch) -> Bool {
    running[batch.id]?.task = task
    return running[batch.id]?.waiting.isEmpty ?? false
  }

  /// Takes out who was cancelled; returns the task of the request too if nobody else waits for it.
  mutating func leave(_ id: UInt64) -> (Answer?, abandoned: Task<Void, Never>?) {
    if let position = waiting.firstIndex(where: { $0.id == id }) { return (waiting.remove(at: position).waiter, nil) }
    guard let (member, batch) = asked.removeValue(forKey: id) else { return (nil, nil) }
    running[batch]?.waiting.remove(id)
    return (member.waiter, running[batch]?.waiting.isEmpty == true ? running[batch]?.task : nil)
  }

  /// Ends a request, and returns who still waits for it.
  mutating func end(_ batch: Batch) -> [Member] {
    running[batch.id] = nil
    return batch.members.filter { asked.removeValue(forKey: $0.id) != nil }
  }

  /// Ends a request that failed as a whole, and lets its keys wait again, before all others, for two requests of half of them each.
  mutating func divide(_ batch: Batch) {
    var members = end(batch)
    var keys: [Key: Int] = [:]
    for member in members where keys[member.request.key] == nil { keys[member.request.key] = keys.count }
    let (first, second) = (number(), number())
    for position in members.indices {
      members[position].part = keys[members[position].request.key, default: 0] < (keys.count + 1) / 2 ? first : second
    }
    waiting.insert(contentsOf: members, at: 0)
  }
}
