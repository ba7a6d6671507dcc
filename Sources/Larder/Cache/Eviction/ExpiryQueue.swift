internal import HeapModule

/// A queue of keys with moments, of which the earliest comes out first.
///
/// A key that was removed or came again stays in it until it is met, or dropped with ``removeAll(where:)``; its serial number tells.
struct ExpiryQueue<Key: Sendable>: Sendable {
  struct Element: Comparable, Sendable {
    let key: Key
    let moment: Duration
    let serial: UInt64

    static func == (first: Element, second: Element) -> Bool { first.moment == second.moment && first.serial == second.serial }
    static func < (first: Element, second: Element) -> Bool { (first.moment, first.serial) < (second.moment, second.serial) }
  }

  private var heap = Heap<Element>()

  var count: Int { heap.count }

  mutating func insert(_ key: Key, at moment: Duration, _ serial: UInt64) {
    heap.insert(Element(key: key, moment: moment, serial: serial))
  }

  /// Takes out the earliest element, if its moment has come.
  mutating func popFirst(by now: Duration) -> Element? {
    guard let first = heap.min, first.moment <= now else { return nil }
    return heap.popMin()
  }

  /// Drops elements, in linear time.
  mutating func removeAll(where isGone: (Element) -> Bool) { heap = Heap(heap.unordered.filter { !isGone($0) }) }
}
