/// Elements in their order, taken from the front: those that are no longer wanted are dropped when it is their turn.
struct OrderedQueue<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []
  private var start = 0
  private var isSorted = true

  /// The positions of what is left.
  var indices: Range<Int> { start..<elements.count }

  subscript(position: Int) -> Element { elements[position] }

  mutating func append(_ element: Element) {
    if let last = elements.last, element < last { isSorted = false }
    elements.append(element)
  }

  /// Puts the elements in their order, and drops unwanted ones at the front.
  ///
  /// Cost: a look at those that are dropped; sorting where an element came out of order.
  mutating func prepare(_ isWanted: (Element) -> Bool) {
    if !isSorted {
      elements = elements[start...].filter(isWanted).sorted()
      (start, isSorted) = (0, true)
    }
    while start < elements.count, !isWanted(elements[start]) { start += 1 }
    // What was dropped is moved over once it is the larger part: each element a constant number of times.
    guard start > elements.count / 2 else { return }
    elements.removeFirst(start)
    start = 0
  }
}
