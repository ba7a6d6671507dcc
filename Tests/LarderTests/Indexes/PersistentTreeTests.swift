import Testing

@testable import Larder

/// The sorted tree behind all indexes, against a sorted array that does the same.
@Suite(.timeLimit(.minutes(15))) struct PersistentTreeTests {
  /// Trees of all widths, with a summary and without.
  private static let kinds: [any TreeTrial.Type] = [
    Trial<TagEntry<Three>>.self, Trial<TagEntry<Four>>.self, Trial<TagEntry<Five>>.self, Trial<TagEntry<Eight>>.self,
    Trial<TagEntry<Usual>>.self,
    Trial<BlurredEntry<Three>>.self, Trial<BlurredEntry<Eight>>.self,
    Trial<SpanEntry<Three>>.self, Trial<SpanEntry<Eight>>.self, Trial<SpanEntry<Usual>>.self,
  ]

  @Test func aTreeDoesWhatASortedArrayDoes() {
    for seed in Seeds.list(Torture.count(17, full: 200), for: "persistent tree") {
      let kind = Self.kinds[Int(seed % UInt64(Self.kinds.count))]
      if let difference = kind.differenceFromArray(seed, steps: 400) {
        Issue.record("\(difference) in \(kind); replay with LARDER_SEED=\(seed)")
        return
      }
    }
  }

  @Test(arguments: kinds.indices) func loadingSortedEntriesEqualsInsertingThem(_ kind: Int) {
    let failure = Self.kinds[kind].failureOfLoading(Array(0...150) + [1_000, 1_295, 1_296] + (Torture.isOn ? [3_000] : []))
    #expect(failure == nil)
  }

  @Test(arguments: kinds.indices) func aTreeCanBeEmptiedInAnyOrderAndFilledAgain(_ kind: Int) {
    var random = SeededGenerator(7)
    let all = Array(0..<Torture.count(250, full: 600))
    let failure = Self.kinds[kind].failureOfEmptying([all, all.reversed(), all.shuffled(using: &random)])
    #expect(failure == nil)
  }

  @Test func anEntryMakesWayForOneWithItsKey() {
    var tree = PersistentTree(sorted: (0..<500).map { TagEntry<Four>(key: $0) })
    for key in 0..<500 {
      let old = tree.insert(TagEntry(key: key, tag: 1))
      #expect(old?.tag == 0)
    }
    #expect(tree.count == 500)
    #expect(tree.entries().allSatisfy { $0.tag == 1 })
    #expect(tree.defect() == nil)
  }

  /// A key may refer to what its entry holds: where an entry was replaced or removed, no node may keep the old one alive.
  @Test func noNodeKeepsAnEntryThatIsGone() {
    var tree = PersistentTree(sorted: (0..<200).map { Held(number: $0, box: Box()) })
    var boxes: [WeakBox] = []
    for number in 0..<200 {
      boxes.append(WeakBox(box: tree.find(Held(number: number, box: nil))?.box))
      tree.insert(Held(number: number, box: Box()))
    }
    #expect(boxes.count { $0.box != nil } == 0)
    boxes = (0..<200).map { number in WeakBox(box: tree.find(Held(number: number, box: nil))?.box) }
    for number in 0..<200 where number % 7 != 3 { tree.remove(Held(number: number, box: nil)) }
    #expect(boxes.count { $0.box != nil } == (0..<200).count { $0 % 7 == 3 })
    #expect(tree.count == (0..<200).count { $0 % 7 == 3 })
  }

  @Test func whatNobodySharesIsEditedInPlace() {
    var tree = PersistentTree(sorted: (0..<5_000).map { TagEntry<Usual>(key: $0) })
    let before = tree.root.storage()
    for key in 0..<5_000 { tree.insert(TagEntry(key: key, tag: 1)) }
    #expect(tree.root.storage() == before)
  }

  @Test func aCopySharesAllThatAChangeDoesNotPass() {
    var tree = PersistentTree(sorted: (0..<5_000).map { TagEntry<Eight>(key: $0) })
    let copy = tree
    tree.insert(TagEntry(key: 1, tag: 1))
    let (old, new) = (copy.root.storage(), tree.root.storage())
    #expect(old.count > 100)
    #expect(old.count == new.count)
    #expect(zip(old, new).count { $0 != $1 } == 1, "only the entries of the leaf are copied")
    #expect(copy.entries().allSatisfy { $0.tag == 0 })
    let after = tree.root.storage()
    tree.insert(TagEntry(key: 2, tag: 1))
    #expect(tree.root.storage() == after, "the leaf is the tree's own now")
  }

  @Test func aRankIsFoundWithFewQuestions() {
    let tree = PersistentTree(sorted: (0..<100_000).map { TagEntry<Usual>(key: $0) })
    for target in stride(from: 0, through: 100_000, by: 9_973) {
      var questions = 0
      let rank = tree.rank { key in
        questions += 1
        return key >= target
      }
      #expect(rank == target)
      #expect(questions <= 20)
    }
  }

  @Test func anErrorEndsAVisit() {
    struct Stop: Error {}
    let tree = PersistentTree(sorted: (0..<1_000).map { TagEntry<Four>(key: $0) })
    for reversed in [false, true] {
      var visited: [Int] = []
      let error = #expect(throws: Stop.self) {
        try tree.forEach(in: 100..<200, reversed: reversed) { entry throws(Stop) in
          if visited.count == 10 { throw Stop() }
          visited.append(entry.key)
          return true
        }
      }
      #expect(error != nil)
      #expect(visited == (reversed ? Array(190..<200).reversed() : Array(100..<110)))
    }
  }
}

// MARK: - Entries

/// The widths of the nodes of a tree.
private protocol Widths: Sendable {
  static var leaf: Int { get }
  static var fan: Int { get }
}
private enum Three: Widths { static let (leaf, fan) = (3, 3) }
private enum Four: Widths { static let (leaf, fan) = (4, 4) }
private enum Five: Widths { static let (leaf, fan) = (5, 3) }
private enum Eight: Widths { static let (leaf, fan) = (8, 6) }
private enum Usual: Widths { static let (leaf, fan) = (64, 8) }

private protocol TestEntry: TreeEntry where Key == Int, Summary: Equatable {
  init(key: Int)
}

private struct TagEntry<Width: Widths>: TestEntry {
  let key: Int
  var tag = 0

  static var leafCapacity: Int { Width.leaf }
  static var fanOut: Int { Width.fan }
  typealias Summary = NoSummary<Self>

  init(key: Int) { self.key = key }
  init(key: Int, tag: Int) { (self.key, self.tag) = (key, tag) }
}

/// An entry whose digest many keys share, so that inner nodes do not tell them apart.
private struct BlurredEntry<Width: Widths>: TestEntry {
  typealias Summary = NoSummary<Self>

  let key: Int
  static var leafCapacity: Int { Width.leaf }
  static var fanOut: Int { Width.fan }
  static func digest(_ key: Int) -> UInt8 { UInt8(clamping: (key + 500) / 50) }
  static var isDigestExact: Bool { false }
}

/// An entry whose nodes know the least and the greatest key below them.
private struct SpanEntry<Width: Widths>: TestEntry {
  struct Summary: TreeSummary, Equatable {
    typealias Entry = SpanEntry<Width>
    var (low, high): (Int, Int)
    init(_ entry: Entry) { (low, high) = (entry.key, entry.key) }
    mutating func formUnion(_ other: Self) { (low, high) = (min(low, other.low), max(high, other.high)) }
  }

  let key: Int
  static var leafCapacity: Int { Width.leaf }
  static var fanOut: Int { Width.fan }
}

extension NoSummary: Equatable {
  static func == (left: Self, right: Self) -> Bool { true }
}

private final class Box: Sendable {}
private struct WeakBox { weak var box: Box? }

/// An entry that is its own key, as those of an ordered index are.
private struct Held: TreeEntry, Comparable {
  let number: Int
  let box: Box?
  typealias Summary = NoSummary<Held>
  static let leafCapacity = 4
  static let fanOut = 4

  var key: Held { self }
  static func == (left: Held, right: Held) -> Bool { left.number == right.number }
  static func < (left: Held, right: Held) -> Bool { left.number < right.number }
}

// MARK: - Trials

/// Trials of trees of one kind of entries.
private protocol TreeTrial: SendableMetatype {
  static func differenceFromArray(_ seed: UInt64, steps: Int) -> String?
  static func failureOfLoading(_ counts: [Int]) -> String?
  static func failureOfEmptying(_ orders: [[Int]]) -> String?
}

/// A tree, a sorted array, and copies of both from earlier on.
private struct Trial<Entry: TestEntry>: TreeTrial {
  private var random: SeededGenerator
  private var tree: PersistentTree<Entry>
  private var model: [Int] = []
  private var copies: [(tree: PersistentTree<Entry>, model: [Int])] = []

  static func failureOfLoading(_ counts: [Int]) -> String? {
    for count in counts {
      let keys = (0..<count).map { $0 * 2 }
      var loaded = PersistentTree(sorted: keys.map { Entry(key: $0) })
      var inserted = PersistentTree<Entry>()
      for key in keys { inserted.insert(Entry(key: key)) }
      for tree in [loaded, inserted] where tree.keys() != keys || tree.count != count || tree.defect() != nil {
        return "\(count) entries: \(tree.defect() ?? "another order or count")"
      }
      for key in keys { loaded.insert(Entry(key: key + 1)) }
      if loaded.keys() != Array(0..<count * 2) || loaded.defect() != nil {
        return "\(count) entries, then as many: \(loaded.defect() ?? "another order")"
      }
    }
    return nil
  }

  static func failureOfEmptying(_ orders: [[Int]]) -> String? {
    var tree = PersistentTree<Entry>()
    for order in orders {
      for key in order where tree.insert(Entry(key: key)) != nil { return "\(key) was there already" }
      if let defect = tree.defect() { return defect }
      if tree.keys() != order.sorted() { return "another order" }
      for (step, key) in order.enumerated() {
        let old = tree.remove(key)
        guard old?.key == key, tree.count == order.count - step - 1, tree.defect() == nil else {
          return "removing \(key): \(tree.defect() ?? "missing, or another count")"
        }
      }
      if !tree.isEmpty || !tree.keys().isEmpty || tree.rank(whereFirst: { _ in true }) != 0 { return "not empty" }
    }
    return nil
  }

  static func differenceFromArray(_ seed: UInt64, steps: Int) -> String? {
    var trial = Trial(seed)
    return trial.difference(steps: steps)
  }

  private init(_ seed: UInt64) {
    var random = SeededGenerator(seed)
    if random.chance(50) { model = Set((0..<random.int(1..<400)).map { _ in random.int(0..<500) }).sorted() }
    self.random = random
    tree = PersistentTree(sorted: model.map { Entry(key: $0) })
  }

  /// Does random things to both.
  /// - Returns: The first difference.
  private mutating func difference(steps: Int) -> String? {
    var removals = 50
    for step in 0..<steps {
      if step % 100 == 0 { removals = random.int(0..<100) }  // so that trees grow and shrink for a while
      if let difference = change(removals) ?? read() ?? (step % 8 == 0 ? tree.defect() : nil) { return "step \(step): \(difference)" }
      if random.chance(3) { copies.append((tree, model)) }
    }
    for (index, copy) in copies.enumerated() where copy.tree.keys() != copy.model || copy.tree.defect() != nil {
      return "copy \(index) has changed"
    }
    return nil
  }

  private mutating func change(_ removals: Int) -> String? {
    let value = random.int(0..<500)
    let position = model.firstIndex { $0 >= value } ?? model.count
    let isThere = position < model.count && model[position] == value
    if random.chance(removals) {
      if isThere { model.remove(at: position) }
      if (tree.remove(value) != nil) != isThere { return "remove(\(value)) should say \(isThere)" }
    } else if random.chance(10) {
      if tree.update(value, { $0 = Entry(key: value) }) != isThere { return "update(\(value)) should say \(isThere)" }
    } else {
      if !isThere { model.insert(value, at: position) }
      if (tree.insert(Entry(key: value)) != nil) != isThere { return "insert(\(value)) should say \(!isThere)" }
    }
    return tree.count == model.count ? nil : "count \(tree.count), not \(model.count)"
  }

  private mutating func read() -> String? {
    let value = random.int(-1..<501)
    let rank = model.firstIndex { $0 >= value } ?? model.count
    if tree.rank(whereFirst: { $0 >= value }) != rank { return "rank of \(value) is not \(rank)" }
    if rank < model.count, tree.entry(at: rank).key != model[rank] { return "entry \(rank) is not \(model[rank])" }
    let isThere = rank < model.count && model[rank] == value
    if (tree.find(value) != nil) != isThere { return "find(\(value)) should say \(isThere)" }
    let (before, after) = tree.neighbours(of: value)
    let next = isThere ? rank + 1 : rank
    if before?.key != (rank > 0 ? model[rank - 1] : nil) || after?.key != (next < model.count ? model[next] : nil) {
      return "the neighbours of \(value) are others"
    }

    let start = random.int(-5..<model.count + 5)
    let ranks = start..<random.int(start..<model.count + 6)
    let reversed = random.chance(50)
    let most = random.chance(50) ? random.int(1..<20) : Int.max
    let there = Array(model[ranks.clamped(to: 0..<model.count)])
    let expected = Array((reversed ? there.reversed() : there).prefix(most))
    let visited = tree.entries(in: ranks, reversed: reversed, most: most).map(\.key)
    return visited == expected ? nil : "\(ranks), reversed \(reversed), at most \(most): \(visited), not \(expected)"
  }
}

// MARK: - Shape

extension PersistentTree {
  fileprivate func entries(in ranks: Range<Int>? = nil, reversed: Bool = false, most: Int = .max) -> [Entry] {
    var visited: [Entry] = []
    forEach(in: ranks ?? 0..<count, reversed: reversed) { entry in
      visited.append(entry)
      return visited.count < most
    }
    return visited
  }

  fileprivate func keys() -> [Entry.Key] { entries().map(\.key) }
}

extension PersistentTree where Entry.Summary: Equatable {
  /// Returns a defect in the shape of the tree, if there is one.
  fileprivate func defect() -> String? { root.defect(isRoot: true, isLast: true) }
}

extension PersistentTreeNode where Entry.Summary: Equatable {
  fileprivate func defect(isRoot: Bool = false, isLast: Bool) -> String? {
    let capacity = isLeaf ? Entry.leafCapacity : Entry.fanOut
    if width > capacity { return "a node of width \(width)" }
    // The last node of a level may be narrow: entries that come in order leave full nodes behind.
    if !isRoot, width < (isLast ? 1 : Self.fewest(of: capacity)) { return "a node of width \(width) below the root" }
    guard case .inner(let children) = self else { return nil }
    if isRoot, width < 2 { return "a root of one child" }
    if Set(children.map { $0.node.height }).count != 1 { return "leaves at different depths" }
    for (index, child) in children.enumerated() {
      guard let fresh = Child(child.node) else { return "an empty child" }
      if child.count != fresh.count { return "a child that counts \(child.count), not \(fresh.count)" }
      if child.first != fresh.first { return "a child with another first key" }
      if child.summary != fresh.summary { return "a child with another summary" }
      if let defect = child.node.defect(isLast: isLast && index == children.count - 1) { return defect }
    }
    return nil
  }

  private var height: Int { if case .inner(let children) = self { 1 + (children.first?.node.height ?? 0) } else { 0 } }
}

extension PersistentTreeNode {
  /// Returns the addresses of the entries of the leaves in memory.
  fileprivate func storage() -> [UnsafePointer<Entry>?] {
    switch self {
    case .leaf(let entries): [entries.withUnsafeBufferPointer { $0.baseAddress }]
    case .inner(let children): children.flatMap { $0.node.storage() }
    }
  }
}
