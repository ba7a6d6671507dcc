import Testing

@testable import Larder

/// The sorted set behind ordered indexes, against a sorted array that does the same.
@Suite(.timeLimit(.minutes(1))) struct CountedTreeTests {
  @Test func aTreeDoesWhatASortedArrayDoes() {
    for seed in Seeds.list(100, for: "counted tree") {
      var run = TreeRun(seed)
      if let difference = run.difference(steps: 400) {
        Issue.record("\(difference) with node limit \(run.limit); replay with LARDER_SEED=\(seed)")
        return
      }
    }
  }

  @Test(arguments: [3, 4, 5, 6, 7, 8, 16, 47]) func loadingSortedElementsEqualsInsertingThem(_ limit: Int) {
    for count in Array(0...150) + [1_000, 1_295, 1_296, 3_000] {
      let elements = (0..<count).map { $0 * 2 }
      var loaded = CountedTree(sorted: elements, nodeLimit: limit)
      var inserted = CountedTree<Int>(nodeLimit: limit)
      for element in elements { inserted.insert(element) }
      for tree in [loaded, inserted] where tree.elements() != elements || tree.count != count || tree.defect() != nil {
        Issue.record("\(count) elements: \(tree.defect() ?? "another order or count")")
      }
      for element in elements { loaded.insert(element + 1) }
      if loaded.elements() != Array(0..<count * 2) || loaded.defect() != nil {
        Issue.record("\(count) elements, then as many: \(loaded.defect() ?? "another order")")
      }
    }
  }

  @Test(arguments: [3, 4, 47]) func aTreeCanBeEmptiedInAnyOrderAndFilledAgain(_ limit: Int) {
    var random = SeededGenerator(7)
    let all = Array(0..<600)
    var tree = CountedTree<Int>(nodeLimit: limit)
    for order in [all, all.reversed(), all.shuffled(using: &random)] {
      for element in order {
        let isNew = tree.insert(element)
        #expect(isNew)
      }
      #expect(tree.defect() == nil)
      #expect(tree.elements() == all)
      for (step, element) in order.enumerated() {
        guard tree.remove(element), tree.count == all.count - step - 1, tree.defect() == nil else {
          Issue.record("removing \(element): \(tree.defect() ?? "missing, or another count")")
          return
        }
      }
      #expect(tree.elements().isEmpty)
      #expect(tree.rank { _ in true } == 0)
    }
  }

  @Test func anElementMakesWayForAnEqualOne() {
    var tree = CountedTree(sorted: (0..<500).map { KeyedTag(key: $0, tag: 0) }, nodeLimit: 4)
    for key in 0..<500 {
      let isNew = tree.insert(KeyedTag(key: key, tag: 1))
      #expect(!isNew)
    }
    #expect(tree.count == 500)
    #expect(tree.elements().allSatisfy { $0.tag == 1 })
  }

  @Test func whatNobodySharesIsEditedInPlace() {
    var tree = CountedTree(sorted: (0..<5_000).map { KeyedTag(key: $0, tag: 0) })
    let before = tree.root.storage()
    for key in 0..<5_000 { tree.insert(KeyedTag(key: key, tag: 1)) }
    #expect(tree.root.storage() == before)
  }

  @Test func aCopySharesAllThatAChangeDoesNotPass() {
    var tree = CountedTree(sorted: (0..<5_000).map { KeyedTag(key: $0, tag: 0) })
    let copy = tree
    tree.insert(KeyedTag(key: 1, tag: 1))
    let (old, new) = (copy.root.storage(), tree.root.storage())
    #expect(old.count > 100)
    #expect(old.count == new.count)
    #expect(zip(old, new).count { $0 != $1 } == 1, "only the elements of the leaf are copied")
    #expect(copy.elements().allSatisfy { $0.tag == 0 })
    let after = tree.root.storage()
    tree.insert(KeyedTag(key: 2, tag: 1))
    #expect(tree.root.storage() == after, "the leaf is the tree's own now")
  }

  @Test func aRankIsFoundWithFewQuestions() {
    let tree = CountedTree(sorted: Array(0..<100_000))
    for target in stride(from: 0, through: 100_000, by: 997) {
      var questions = 0
      let rank = tree.rank { element in
        questions += 1
        return element >= target
      }
      #expect(rank == target)
      #expect(questions <= 20)
    }
  }

  @Test func anErrorEndsAVisit() {
    struct Stop: Error {}
    let tree = CountedTree(sorted: Array(0..<1_000), nodeLimit: 4)
    for reversed in [false, true] {
      var visited: [Int] = []
      let error = #expect(throws: Stop.self) {
        try tree.forEach(in: 100..<200, reversed: reversed) { element throws(Stop) in
          if visited.count == 10 { throw Stop() }
          visited.append(element)
          return true
        }
      }
      #expect(error != nil)
      #expect(visited == (reversed ? Array(190..<200).reversed() : Array(100..<110)))
    }
  }
}

/// An element that is equal to those of the same key.
private struct KeyedTag: Comparable {
  let key: Int
  let tag: Int

  static func == (left: KeyedTag, right: KeyedTag) -> Bool { left.key == right.key }
  static func < (left: KeyedTag, right: KeyedTag) -> Bool { left.key < right.key }
}

/// A tree, a sorted array, and copies of both from earlier on.
private struct TreeRun {
  let limit: Int
  private var random: SeededGenerator
  private var tree: CountedTree<Int>
  private var model: [Int] = []
  private var copies: [(tree: CountedTree<Int>, model: [Int])] = []

  init(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    limit = [3, 3, 4, 5, 8, 47][random.int(0..<6)]
    if random.chance(50) { model = Set((0..<random.int(1..<400)).map { _ in random.int(0..<500) }).sorted() }
    self.random = random
    tree = CountedTree(sorted: model, nodeLimit: limit)
  }

  /// Does random things to both.
  /// - Returns: What the first difference is.
  mutating func difference(steps: Int) -> String? {
    var removals = 50
    for step in 0..<steps {
      if step % 100 == 0 { removals = random.int(0..<100) }  // so that trees grow and shrink for a while
      if let difference = change(removals) ?? read() ?? (step % 8 == 0 ? tree.defect() : nil) { return "step \(step): \(difference)" }
      if random.chance(3) { copies.append((tree, model)) }
    }
    for (index, copy) in copies.enumerated() where copy.tree.elements() != copy.model || copy.tree.defect() != nil {
      return "copy \(index) has changed"
    }
    return nil
  }

  private mutating func change(_ removals: Int) -> String? {
    let value = random.int(0..<500)
    let place = model.firstIndex { $0 >= value } ?? model.count
    let isThere = place < model.count && model[place] == value
    if random.chance(removals) {
      if isThere { model.remove(at: place) }
      if tree.remove(value) != isThere { return "remove(\(value)) should say \(isThere)" }
    } else {
      if !isThere { model.insert(value, at: place) }
      if tree.insert(value) == isThere { return "insert(\(value)) should say \(!isThere)" }
    }
    return tree.count == model.count ? nil : "count \(tree.count), not \(model.count)"
  }

  private mutating func read() -> String? {
    let value = random.int(-1..<501)
    let rank = model.firstIndex { $0 >= value } ?? model.count
    if tree.rank(whereFirst: { $0 >= value }) != rank { return "rank of \(value) is not \(rank)" }
    if rank < model.count, tree.element(at: rank) != model[rank] { return "element \(rank) is not \(model[rank])" }

    let start = random.int(-5..<model.count + 5)
    let ranks = start..<random.int(start..<model.count + 6)
    let reversed = random.chance(50)
    let most = random.chance(50) ? random.int(1..<20) : Int.max
    let there = Array(model[ranks.clamped(to: 0..<model.count)])
    let expected = Array((reversed ? there.reversed() : there).prefix(most))
    let visited = tree.elements(in: ranks, reversed: reversed, most: most)
    return visited == expected ? nil : "\(ranks), reversed \(reversed), at most \(most): \(visited), not \(expected)"
  }
}

extension CountedTree {
  fileprivate func elements(in ranks: Range<Int>? = nil, reversed: Bool = false, most: Int = .max) -> [Element] {
    var visited: [Element] = []
    forEach(in: ranks ?? 0..<count, reversed: reversed) { element in
      visited.append(element)
      return visited.count < most
    }
    return visited
  }

  /// What is wrong with the shape of the tree, if anything.
  fileprivate func defect() -> String? { root.defect(limit: nodeLimit) }
}

extension CountedTreeNode {
  fileprivate func defect(limit: Int, isRoot: Bool = true) -> String? {
    if elements.count > limit { return "a node of \(elements.count) elements" }
    if !isRoot, elements.count < Self.fewest(limit) { return "a node of \(elements.count) elements below the root" }
    if count != children.reduce(elements.count, { $0 + $1.count }) { return "a node that counts \(count)" }
    if children.isEmpty { return nil }
    if children.count != elements.count + 1 { return "\(children.count) children around \(elements.count) elements" }
    if Set(children.map { $0.height }).count != 1 { return "leaves at different depths" }
    return children.lazy.compactMap { $0.defect(limit: limit, isRoot: false) }.first
  }

  private var height: Int { children.first.map { $0.height + 1 } ?? 0 }

  /// Where the elements of this node and those below are in memory.
  fileprivate func storage() -> [UnsafePointer<Element>?] {
    [elements.withUnsafeBufferPointer { $0.baseAddress }] + children.flatMap { $0.storage() }
  }
}
