/// A queue of keys with moments, of which the earliest comes out first, and of equal ones the one that came first.
///
/// Without moments it is a queue in the order of arrival. A key is in it once. Cost: O(log n) for each call.
struct KeyQueue<Key: Hashable & Sendable>: Sendable {
  private struct Position: Comparable, Sendable {
    let moment: Duration
    let serial: UInt64

    static func < (left: Position, right: Position) -> Bool {
      (left.moment, left.serial) < (right.moment, right.serial)
    }
  }

  private struct Element: TreeEntry {
    typealias Summary = NoSummary<Element>

    let key: Position
    let queued: Key
  }

  private var elements = PersistentTree<Element>()
  private var positions: [Key: Position] = [:]
  private var serial: UInt64 = 0

  var count: Int { positions.count }

  /// Inserts a key, or moves the one that is there.
  mutating func insert(_ key: Key, at moment: Duration = .zero) {
    remove(key)
    serial += 1
    let position = Position(moment: moment, serial: serial)
    positions[key] = position
    elements.insert(Element(key: position, queued: key))
  }

  /// Removes a key, and returns whether it was there.
  @discardableResult mutating func remove(_ key: Key) -> Bool {
    guard let position = positions.removeValue(forKey: key) else { return false }
    elements.remove(position)
    return true
  }

  /// Takes out the earliest key, if its moment has come.
  mutating func popFirst(by now: Duration = .zero) -> Key? {
    guard let first = elements.first, first.key.moment <= now else { return nil }
    remove(first.queued)
    return first.queued
  }
}
