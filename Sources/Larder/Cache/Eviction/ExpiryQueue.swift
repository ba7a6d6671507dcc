/// Keys with moments, of which the earliest comes out first: a binary heap.
///
/// A key that was removed or came again stays in it until it is met, or dropped with ``removeAll(where:)``; its serial number tells.
struct ExpiryQueue<Key: Sendable>: Sendable {
  struct Element: Sendable {
    let key: Key
    let moment: Duration
    let serial: UInt64
  }

  private var elements: [Element] = []

  var count: Int { elements.count }

  mutating func insert(_ key: Key, at moment: Duration, _ serial: UInt64) {
    elements.append(Element(key: key, moment: moment, serial: serial))
    var child = elements.count - 1
    while child > 0, elements[child].moment < elements[(child - 1) / 2].moment {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Takes out the earliest element, if its moment has come.
  mutating func popFirst(by now: Duration) -> Element? {
    guard let first = elements.first, first.moment <= now else { return nil }
    let last = elements.removeLast()
    guard !elements.isEmpty else { return first }
    elements[0] = last
    sink(0)
    return first
  }

  /// Drops elements, in linear time.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    elements.removeAll(where: isGone)
    for parent in (0..<elements.count / 2).reversed() { sink(parent) }
  }

  private mutating func sink(_ start: Int) {
    var parent = start
    while true {
      var child = 2 * parent + 1
      guard child < elements.count else { return }
      if child + 1 < elements.count, elements[child + 1].moment < elements[child].moment { child += 1 }
      guard elements[child].moment < elements[parent].moment else { return }
      elements.swapAt(child, parent)
      parent = child
    }
  }
}
