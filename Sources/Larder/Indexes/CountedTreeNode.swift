/// A node of a ``CountedTree``: elements in order, and unless it is a leaf one child more than elements, around them.
///
/// All leaves are equally deep. Only the root has fewer elements than ``fewest(_:)``. A child is always changed in its place in the array:
/// taken out as a value it would be shared with the array, and each change would copy it.
struct CountedTreeNode<Element: Comparable & Sendable>: Sendable {
  private(set) var elements: [Element] = []
  private(set) var children: [CountedTreeNode] = []
  /// The number of elements in this node and below it.
  private(set) var count = 0

  init() {}

  private init(_ elements: [Element], _ children: [CountedTreeNode]) {
    self.elements = elements
    self.children = children
    count = children.reduce(elements.count) { $0 + $1.count }
  }

  /// A node with fewer elements is joined with a sibling.
  ///
  /// Less than half, so that joining and splitting do not alternate.
  static func fewest(_ limit: Int) -> Int { max(1, limit / 4) }
}

// MARK: - Changing

extension CountedTreeNode {
  mutating func insert(_ element: Element, limit: Int) -> Bool {
    let index = index(of: element)
    if index < elements.count, !(element < elements[index]) {
      elements[index] = element
      return false
    }
    if children.isEmpty {
      // The array would double its storage and leave a part unused for ever.
      if elements.count == elements.capacity, elements.count > limit / 2 { elements.reserveCapacity(limit + 1) }
      elements.insert(element, at: index)
    } else {
      guard children[index].insert(element, limit: limit) else { return false }
      if children[index].elements.count > limit { splitChild(index) }
    }
    count += 1
    return true
  }

  mutating func remove(_ element: Element, limit: Int) -> Bool {
    let index = index(of: element)
    let isHere = index < elements.count && !(element < elements[index])
    if children.isEmpty {
      guard isHere else { return false }
      elements.remove(at: index)
    } else if isHere {
      // The greatest element before it takes its place between the children.
      elements[index] = children[index].removeLast(limit: limit)
      mendChild(index, limit: limit)
    } else {
      guard children[index].remove(element, limit: limit) else { return false }
      mendChild(index, limit: limit)
    }
    count -= 1
    return true
  }

  /// Takes the greatest element of a node that is not empty out.
  private mutating func removeLast(limit: Int) -> Element {
    count -= 1
    if children.isEmpty { return elements.removeLast() }
    let index = children.count - 1
    let last = children[index].removeLast(limit: limit)
    mendChild(index, limit: limit)
    return last
  }

  /// Makes a root that has become too large the only child of a new one, and splits it.
  mutating func growUpwards() {
    self = CountedTreeNode([], [self])
    splitChild(0)
  }

  /// Replaces a root that has come to have one child by that child.
  mutating func shrinkDownwards() {
    if elements.isEmpty, let only = children.first { self = only }
  }

  /// Splits a child in two of nearly the same size, with its middle element between them.
  private mutating func splitChild(_ index: Int) {
    let (middle, right) = children[index].splitOff()
    elements.insert(middle, at: index)
    children.insert(right, at: index + 1)
  }

  private mutating func splitOff() -> (Element, CountedTreeNode) {
    let middle = elements.count / 2
    let isLeaf = children.isEmpty
    let right = CountedTreeNode(Array(elements[(middle + 1)...]), isLeaf ? [] : Array(children[(middle + 1)...]))
    elements.removeSubrange((middle + 1)...)
    if !isLeaf { children.removeSubrange((middle + 1)...) }
    count -= right.count + 1
    return (elements.removeLast(), right)
  }

  /// Joins a child that has become too small with a sibling, and splits them evenly if that is too large.
  private mutating func mendChild(_ index: Int, limit: Int) {
    guard children[index].elements.count < Self.fewest(limit) else { return }
    let left = index == 0 ? 0 : index - 1
    let separator = elements.remove(at: left)
    let right = children.remove(at: left + 1)
    children[left].append(separator, right)
    if children[left].elements.count > limit { splitChild(left) }
  }

  private mutating func append(_ separator: Element, _ right: CountedTreeNode) {
    elements.append(separator)
    elements.append(contentsOf: right.elements)
    children.append(contentsOf: right.children)
    count += 1 + right.count
  }
}

// MARK: - Loading

extension CountedTreeNode {
  /// Makes a tree of sorted elements whose nodes have about `fill` of them, equally spread, and room for more.
  init(_ sorted: ArraySlice<Element>, fill: Int) {
    var room = fill + 1
    while room <= sorted.count { room *= fill + 1 }
    self.init(sorted, fill: fill, room: room)
  }

  /// - Parameter room: One more than the elements that a tree of the wanted height can have: a power of `fill + 1`.
  private init(_ sorted: ArraySlice<Element>, fill: Int, room: Int) {
    guard room > fill + 1 else {
      self.init(Array(sorted), [])
      return
    }
    let below = room / (fill + 1)
    // With each child goes the element after it, except for the last: so one more than there are is spread over the children.
    let parts = (sorted.count + below) / below
    var separators: [Element] = []
    var nodes: [CountedTreeNode] = []
    separators.reserveCapacity(parts - 1)
    nodes.reserveCapacity(parts)
    var start = sorted.startIndex
    for part in 0..<parts {
      let end = sorted.startIndex + (sorted.count + 1) * (part + 1) / parts - 1
      nodes.append(CountedTreeNode(sorted[start..<end], fill: fill, room: below))
      if end < sorted.endIndex { separators.append(sorted[end]) }
      start = end + 1
    }
    self.init(separators, nodes)
  }
}

// MARK: - Reading

extension CountedTreeNode {
  /// The index of the first element here for which a monotone predicate holds.
  private func index(whereFirst isAtOrAfter: (Element) -> Bool) -> Int {
    var (low, high) = (0, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if isAtOrAfter(elements[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  private func index(of element: Element) -> Int { index { !($0 < element) } }

  /// The greatest element before another, and the least after it.
  func neighbours(of element: Element) -> (before: Element?, after: Element?) {
    var before: Element?
    var after: Element?
    var node = self
    while true {
      let index = node.index(of: element)
      if index > 0 { before = node.elements[index - 1] }
      let isHere = index < node.elements.count && !(element < node.elements[index])
      let next = isHere ? index + 1 : index
      if next < node.elements.count { after = node.elements[next] }
      if node.children.isEmpty { return (before, after) }
      if isHere {
        // Around an element here lie the end of one child and the beginning of the next.
        return (node.children[index].last ?? before, node.children[next].first ?? after)
      }
      node = node.children[index]
    }
  }

  private var first: Element? { children.first?.first ?? elements.first }
  private var last: Element? { children.last?.last ?? elements.last }

  func rank(whereFirst isAtOrAfter: (Element) -> Bool) -> Int {
    let index = index(whereFirst: isAtOrAfter)
    if children.isEmpty { return index }
    var rank = index + children[index].rank(whereFirst: isAtOrAfter)
    for child in 0..<index { rank += children[child].count }
    return rank
  }

  func element(at rank: Int) -> Element {
    if children.isEmpty { return elements[rank] }
    var (index, rank) = (0, rank)
    while rank > children[index].count {
      rank -= children[index].count + 1
      index += 1
    }
    return rank == children[index].count ? elements[index] : children[index].element(at: rank)
  }

  /// Visits a range of ranks of this node that is not empty.
  /// - Returns: Whether to go on.
  func visit<Failure: Error>(_ ranks: Range<Int>, _ body: (Element) throws(Failure) -> Bool) throws(Failure) -> Bool {
    if children.isEmpty {
      for index in ranks { if try !body(elements[index]) { return false } }
      return true
    }
    var start = 0
    for index in children.indices {
      let end = start + children[index].count
      if start >= ranks.upperBound { return true }
      if end > ranks.lowerBound {
        let inside = max(ranks.lowerBound, start) - start..<min(ranks.upperBound, end) - start
        if try !children[index].visit(inside, body) { return false }
      }
      if ranks.contains(end), try !body(elements[index]) { return false }
      start = end + 1
    }
    return true
  }

  /// Visits a range of ranks of this node that is not empty, from its end to its start.
  /// - Returns: Whether to go on.
  func visitReversed<Failure: Error>(_ ranks: Range<Int>, _ body: (Element) throws(Failure) -> Bool) throws(Failure) -> Bool {
    if children.isEmpty {
      for index in ranks.reversed() { if try !body(elements[index]) { return false } }
      return true
    }
    var end = count
    for index in children.indices.reversed() {
      let start = end - children[index].count
      if ranks.contains(end), try !body(elements[index]) { return false }
      if end <= ranks.lowerBound { return true }
      if start < ranks.upperBound {
        let inside = max(ranks.lowerBound, start) - start..<min(ranks.upperBound, end) - start
        if try !children[index].visitReversed(inside, body) { return false }
      }
      end = start - 1
    }
    return true
  }
}
