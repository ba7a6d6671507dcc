// A sorted set whose copies share what they have in common, for the ordered indexes of a collection.
//
// Every node is a value of two arrays and a count, so that copy-on-write is that of `Array`: a change copies the arrays on its path that
// another copy still uses, and edits the others where they are. Nothing is locked, and nothing that another copy sees is ever changed.
// An index publishes a copy with each snapshot; queries search and walk it, the commit path edits the newest.

/// A sorted set that knows the rank of each element: a persistent B-tree whose nodes count what is below them.
///
/// A copy costs nothing. A change costs O(log n), and the first one after a copy was taken also copies the nodes on its path.
struct CountedTree<Element: Comparable & Sendable>: Sendable {
  private(set) var root: CountedTreeNode<Element>
  /// How many elements a node holds at most; another number than the usual serves tests, which want deep trees of few elements.
  let nodeLimit: Int

  /// Nodes of at most 47 elements and 48 children: fewer make searches deeper, more make the first change after a copy dearer.
  static var usualNodeLimit: Int { 47 }

  /// Makes an empty set.
  /// - Parameter nodeLimit: At least 3.
  init(nodeLimit: Int = CountedTree.usualNodeLimit) {
    root = CountedTreeNode()
    self.nodeLimit = nodeLimit
  }

  /// Makes a set of elements that ascend strictly, in O(n); the caller answers for the order.
  init(sorted: [Element], nodeLimit: Int = CountedTree.usualNodeLimit) {
    root = CountedTreeNode(sorted[...], fill: nodeLimit * 3 / 4)
    self.nodeLimit = nodeLimit
  }

  /// The number of elements.
  var count: Int { root.count }

  /// Puts an element in; one that is equal makes way for it, since equal entries may refer to different states of a record.
  /// - Returns: Whether there was no equal one.
  @discardableResult mutating func insert(_ element: Element) -> Bool {
    guard root.insert(element, limit: nodeLimit) else { return false }
    if root.elements.count > nodeLimit { root.growUpwards() }
    return true
  }

  /// As ``insert(_:)``, and tells the elements just before it and just after it; for one search more.
  mutating func insertBetween(_ element: Element) -> (before: Element?, after: Element?) {
    let neighbours = root.neighbours(of: element)
    insert(element)
    return neighbours
  }

  /// Takes the element that is equal to this one out.
  /// - Returns: Whether there was one.
  @discardableResult mutating func remove(_ element: Element) -> Bool {
    guard root.remove(element, limit: nodeLimit) else { return false }
    root.shrinkDownwards()
    return true
  }

  /// The number of elements before the first for which the predicate holds: the rank of that element, or `count` if there is none.
  ///
  /// The predicate is monotone: once it holds for an element, it holds for all that follow. It is asked O(log n) times.
  func rank(whereFirst isAtOrAfter: (Element) -> Bool) -> Int {
    root.rank(whereFirst: isAtOrAfter)
  }

  /// The element of a rank, which the caller knows to be in `0..<count`.
  ///
  /// Cost: O(log n).
  func element(at rank: Int) -> Element { root.element(at: rank) }

  /// Visits the elements of a range of ranks in order, or from the last to the first, until the body returns `false`.
  ///
  /// Ranks that do not exist are left out. Cost: O(log n + visited).
  func forEach<Failure: Error>(
    in ranks: Range<Int>, reversed: Bool = false, _ body: (Element) throws(Failure) -> Bool
  ) throws(Failure) {
    let ranks = ranks.clamped(to: 0..<count)
    if ranks.isEmpty { return }
    _ = reversed ? try root.visitReversed(ranks, body) : try root.visit(ranks, body)
  }
}
