@testable import Larder

/// An order of eviction at work, for comparing them.
protocol EvictionRival {
  init(capacity: Int)
  /// Uses a key, bringing it in if it was out; whether it was in.
  mutating func use(_ key: Int) -> Bool
}

/// The values that the library keeps.
struct KeptOrder: EvictionRival {
  private var order = EvictionOrder<Int>()
  private var keys: Set<Int> = []
  private let capacity: Int
  init(capacity: Int) { self.capacity = capacity }

  mutating func use(_ key: Int) -> Bool {
    if keys.contains(key) {
      order.touch(key)
      return true
    }
    if keys.count == capacity, let victim = order.evict() { keys.remove(victim) }
    order.insert(key)
    keys.insert(key)
    return false
  }
}

struct SieveOrder: EvictionRival {
  private var sieve = Sieve<Int>()
  private let capacity: Int
  init(capacity: Int) { self.capacity = capacity }

  mutating func use(_ key: Int) -> Bool {
    if sieve.touch(key) { return true }
    if sieve.count == capacity { _ = sieve.evict() }
    sieve.insert(key)
    return false
  }
}

/// The least recently used goes.
struct LRUOrder: EvictionRival {
  private var times: [Int: Int] = [:]
  private var queue: FIFO<(key: Int, time: Int)> = []
  private var now = 0
  private let capacity: Int
  init(capacity: Int) { self.capacity = capacity }

  mutating func use(_ key: Int) -> Bool {
    now += 1
    let isThere = times[key] != nil
    times[key] = now
    queue.append((key, now))
    // Older places of a key are passed over.
    while times.count > capacity, let oldest = queue.popFirst() {
      if times[oldest.key] == oldest.time { times[oldest.key] = nil }
    }
    return isThere
  }
}

/// S3-FIFO as it is published, which asks for two uses in the small queue: a small queue for what is new, a main one, and the ghosts of
/// what has left the small one.
struct PlainS3FIFOOrder: EvictionRival {
  private var small: FIFO<Int> = []
  private var main: FIFO<Int> = []
  private var ghosts: FIFO<Int> = []
  private var isGhost: Set<Int> = []
  private var uses: [Int: Int] = [:]
  private let capacity: Int
  private let smallCapacity: Int

  init(capacity: Int) {
    self.capacity = capacity
    smallCapacity = max(capacity / 10, 1)
  }

  mutating func use(_ key: Int) -> Bool {
    if let count = uses[key] {
      uses[key] = min(count + 1, 3)
      return true
    }
    if uses.count == capacity { evict() }
    if isGhost.remove(key) != nil { main.append(key) } else { small.append(key) }
    uses[key] = 0
    return false
  }

  private mutating func evict() {
    if small.count >= smallCapacity {
      while let key = small.popFirst() {
        if uses[key, default: 0] > 1 {
          uses[key] = 0
          main.append(key)
        } else {
          uses[key] = nil
          ghosts.append(key)
          isGhost.insert(key)
          while ghosts.count > capacity - smallCapacity, let old = ghosts.popFirst() { isGhost.remove(old) }
          return
        }
      }
    }
    while let key = main.popFirst() {
      let count = uses[key, default: 0]
      if count == 0 {
        uses[key] = nil
        return
      }
      uses[key] = count - 1
      main.append(key)
    }
  }
}

/// A queue.
private struct FIFO<Element>: ExpressibleByArrayLiteral {
  private var elements: [Element]
  private var first = 0
  init(arrayLiteral elements: Element...) { self.elements = elements }

  var count: Int { elements.count - first }
  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard first < elements.count else { return nil }
    defer {
      first += 1
      if first > 1_000, first > elements.count / 2 {
        elements.removeFirst(first)
        first = 0
      }
    }
    return elements[first]
  }
}
