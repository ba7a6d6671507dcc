internal import Foundation

/// The keys that were added to an index and removed from it since its run was written.
struct RunEdits: Sendable {
  /// Keys that the run does not have.
  fileprivate var added = PersistentTree<RunKey>()
  /// Keys of the run that were removed.
  fileprivate var removed = PersistentTree<RunKey>()
  /// Keys of the run that were removed and added again.
  ///
  /// An edit may have removed a key that the run lacks. If its addition only took it out of `removed`, no read would find the error, and
  /// the key would be missing.
  fileprivate var restored = PersistentTree<RunKey>()

  init() {}

  /// Makes the edits of removals and additions in their order, or returns `nil` if they do not fit each other.
  init?(_ changes: [(key: Data, isAddition: Bool)]) {
    // Sorting the changes takes a small part of the time of applying them to the trees one by one.
    let order = changes.indices.map { (head: KeyHead(changes[$0].key), position: $0) }.sorted { left, right in
      if left.head != right.head { return left.head < right.head }
      let (first, second) = (changes[left.position].key, changes[right.position].key)
      return first.precedes(second) || !second.precedes(first) && left.position < right.position
    }.map(\.position)
    var (more, less, both): ([RunKey], [RunKey], [RunKey]) = ([], [], [])
    var start = 0
    while start < order.count {
      let (key, isFirstAddition) = changes[order[start]]
      var (end, isAddition) = (start + 1, isFirstAddition)
      while end < order.count, changes[order[end]].key == key {
        // A key is added and removed in turn.
        guard changes[order[end]].isAddition != isAddition else { return nil }
        (isAddition, end) = (!isAddition, end + 1)
      }
      switch (isFirstAddition, isAddition) {
      case (true, true): more.append(RunKey(key))
      case (false, false): less.append(RunKey(key))
      case (false, true): both.append(RunKey(key))
      case (true, false): break
      }
      start = end
    }
    (added, removed, restored) = (PersistentTree(sorted: more), PersistentTree(sorted: less), PersistentTree(sorted: both))
  }

  /// Applies an edit, and returns false if it does not fit the edits before.
  ///
  /// An edit that does not fit the run is found when its keys are read, so that a commit reads no block.
  mutating func apply(_ edit: IndexEdit) -> Bool {
    if let key = edit.removed.map(RunKey.init), !Self.take(key, from: &added) {
      _ = Self.take(key, from: &restored)
      if removed.insert(key) != nil { return false }
    }
    if let key = edit.added.map(RunKey.init) {
      guard key.bytes.count <= KeyRunFormat.longestKey else { return false }
      if Self.take(key, from: &removed) {
        restored.insert(key)
      } else if restored.find(key) != nil || added.insert(key) != nil {
        return false
      }
    }
    return true
  }

  /// Removes a key from a tree, and returns false if the tree lacks it.
  private static func take(_ key: RunKey, from tree: inout PersistentTree<RunKey>) -> Bool {
    // A removal copies the nodes on its way that a base shares, and most keys are in no tree.
    tree.find(key) != nil && tree.remove(key) != nil
  }

  /// Visits edits that together have the effect of the edits that were applied.
  ///
  /// - Parameter body: Closure that receives the key to remove and the key to add, of which one may be `nil`.
  func forEach(_ body: (Data?, Data?) -> Void) {
    removed.forEachLeaf { for key in $0 { body(key.bytes, nil) } }
    restored.forEachLeaf { for key in $0 { body(key.bytes, key.bytes) } }
    added.forEachLeaf { for key in $0 { body(nil, key.bytes) } }
  }
}

/// The keys of an index as of one commit: a run in an index file, and the edits since.
struct RunKeys: Sendable {
  let run: KeyRun
  let edits: RunEdits

  /// Returns keys that divide the index into blocks of some hundred keys.
  func boundaries() throws(RepositoryError) -> [Data] {
    let ofRun = [Data()] + (try run.blocks().blocks.dropFirst().map(\.firstKey))
    if edits.added.isEmpty { return ofRun }
    var boundaries: [Data] = []
    for (number, key) in ofRun.enumerated() {
      boundaries.append(key)
      // Many keys may have been added at one place, such as behind the last key.
      let ranks = ranks(in: edits.added, from: key, below: number + 1 < ofRun.count ? ofRun[number + 1] : nil)
      guard ranks.count > 2 * KeyRunFormat.blockCount else { continue }
      for rank in stride(from: ranks.lowerBound + KeyRunFormat.blockCount, to: ranks.upperBound, by: KeyRunFormat.blockCount) {
        boundaries.append(edits.added.entry(at: rank).bytes)
      }
    }
    return boundaries
  }

  /// The ranges of keys between the boundaries.
  var ranges: [(lower: Data, upper: Data?)] {
    get throws(RepositoryError) {
      let boundaries = try boundaries()
      return Array(zip(boundaries, boundaries.dropFirst().map(Optional.some) + [nil]))
    }
  }

  /// Returns the keys from a key on and below another one, in order.
  ///
  /// - Throws: `.corrupted` if the edits do not fit the run.
  func keys(from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    var found: [Data] = []
    try forEachBlock(from: lower, below: upper) { (block, lower, upper) throws(RepositoryError) in
      let keys = if let block { try run.keys(of: block, from: lower, below: upper) } else { [Data]() }
      var merge = merge(from: lower, below: upper)
      if merge.isEmpty {
        found += keys
        return
      }
      for key in keys {
        let isKept = try key.lending { key throws(RepositoryError) in
          try merge.passes(key, damage: damage(in: block)) { found.append($0) }
        }
        if isKept { found.append(key) }
      }
      try merge.finish(damage: damage(in: block)) { found.append($0) }
    }
    return found
  }

  /// Adds all keys to a writer of another run.
  ///
  /// - Throws: `.corrupted` if the edits do not fit the run.
  func write(to writer: inout KeyRunWriter, in file: inout IndexFile) throws(RepositoryError) {
    func add(_ key: Data) throws(RepositoryError) {
      try key.lending { key throws(RepositoryError) in try writer.add(key, to: &file) }
    }
    try forEachBlock(from: Data(), below: nil) { (block, lower, upper) throws(RepositoryError) in
      var merge = merge(from: lower, below: upper)
      if let block {
        try run.forEachKey(of: block) { key throws(RepositoryError) in
          if try merge.passes(key, damage: damage(in: block), add) { try writer.add(key, to: &file) }
        }
      }
      try merge.finish(damage: damage(in: block), add)
    }
  }

  /// Returns the number of keys from a key on and below another one.
  ///
  /// Edits that do not fit the run are not found, because only the blocks at both ends are read.
  func count(from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    let end = if let upper { try run.rank(of: upper) } else { run.count }
    let (more, less) = (ranks(in: edits.added, from: lower, below: upper), ranks(in: edits.removed, from: lower, below: upper))
    return try max(0, end - run.rank(of: lower) - less.count + more.count)
  }

  /// Visits the parts of a range of keys in order, each of which lies in one block of the run, or in none if the run is empty.
  private func forEachBlock(
    from lower: Data, below upper: Data?, _ body: (KeyRun.Block?, Data, Data?) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    let blocks = try run.blocks().blocks
    guard !blocks.isEmpty else { return try body(nil, lower, upper) }
    var (number, start) = (try run.blocks().block(of: lower), lower)
    while true {
      let next = number + 1 < blocks.count ? blocks[number + 1].firstKey : nil
      guard let next, upper.map({ next.precedes($0) }) ?? true else { return try body(blocks[number], start, upper) }
      try body(blocks[number], start, next)
      (number, start) = (number + 1, next)
    }
  }

  private func merge(from lower: Data, below upper: Data?) -> EditMerge {
    EditMerge(
      added: bytes(in: edits.added, from: lower, below: upper), removed: bytes(in: edits.removed, from: lower, below: upper),
      restored: bytes(in: edits.restored, from: lower, below: upper))
  }

  private func damage(in block: KeyRun.Block?) -> RepositoryError { run.reader.damage(in: block?.part ?? run.part) }

  private func bytes(in tree: PersistentTree<RunKey>, from lower: Data, below upper: Data?) -> [Data] {
    var keys: [Data] = []
    tree.forEach(in: ranks(in: tree, from: lower, below: upper)) { (key) -> Bool in
      keys.append(key.bytes)
      return true
    }
    return keys
  }

  private func ranks(in tree: PersistentTree<RunKey>, from lower: Data, below upper: Data?) -> Range<Int> {
    if tree.isEmpty { return 0..<0 }
    let start = tree.rank(whereFirst: { !$0.bytes.precedes(lower) })
    let end = upper.map { upper in tree.rank(whereFirst: { !$0.bytes.precedes(upper) }) } ?? tree.count
    return start..<max(start, end)
  }
}

/// A merge of the keys of a part of a run with the edits in that part.
private struct EditMerge {
  private let added: [Data]
  private let removed: [Data]
  private let restored: [Data]
  private var (nextAdded, nextRemoved, nextRestored) = (0, 0, 0)

  init(added: [Data], removed: [Data], restored: [Data]) { (self.added, self.removed, self.restored) = (added, removed, restored) }

  var isEmpty: Bool { added.isEmpty && removed.isEmpty && restored.isEmpty }

  /// Passes the added keys before the next key of the run to `body`, and returns true if the key itself was not removed.
  ///
  /// - Throws: `damage` if the key was added though the run has it.
  mutating func passes(
    _ key: UnsafeRawBufferPointer, damage: @autoclosure () -> RepositoryError, _ body: (Data) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> Bool {
    while nextAdded < added.count {
      let order = added[nextAdded].withUnsafeBytes { ($0.precedesInBytes(key), key.precedesInBytes($0)) }
      if order.1 { break }
      guard order.0 else { throw damage() }
      try body(added[nextAdded])
      nextAdded += 1
    }
    if Self.isKey(key, at: nextRestored, in: restored) { nextRestored += 1 }
    guard Self.isKey(key, at: nextRemoved, in: removed) else { return true }
    nextRemoved += 1
    return false
  }

  private static func isKey(_ key: UnsafeRawBufferPointer, at position: Int, in keys: [Data]) -> Bool {
    position < keys.count && keys[position].withUnsafeBytes { $0.elementsEqualBytes(key) }
  }

  /// Passes the added keys behind the last key of the run to `body`.
  ///
  /// - Throws: `damage` if a key was removed that the run does not have.
  mutating func finish(
    damage: @autoclosure () -> RepositoryError, _ body: (Data) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    guard nextRemoved == removed.count, nextRestored == restored.count else { throw damage() }
    for key in added[nextAdded...] { try body(key) }
  }
}

/// The first 32 bytes of a key, by which most keys are compared without a look at their bytes.
private struct KeyHead: Comparable {
  private let numbers: (UInt64, UInt64, UInt64, UInt64)

  init(_ key: Data) {
    var numbers: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &numbers) { numbers in key.withUnsafeBytes { numbers.copyMemory(from: .init(rebasing: $0.prefix(32))) } }
    self.numbers = (numbers.0.bigEndian, numbers.1.bigEndian, numbers.2.bigEndian, numbers.3.bigEndian)
  }

  static func == (left: KeyHead, right: KeyHead) -> Bool { left.numbers == right.numbers }
  static func < (left: KeyHead, right: KeyHead) -> Bool { left.numbers < right.numbers }
}

/// A key of an index as an entry of a tree.
struct RunKey: TreeEntry, Comparable {
  typealias Summary = NoSummary<RunKey>

  let bytes: Data
  var key: RunKey { self }

  init(_ bytes: Data) { self.bytes = bytes }

  static func < (left: RunKey, right: RunKey) -> Bool { left.bytes.precedes(right.bytes) }

  /// The first eight bytes, so that most comparisons of inner nodes read no key.
  static func digest(_ key: RunKey) -> UInt64 {
    var digest: UInt64 = 0
    for byte in key.bytes.prefix(8) { digest = digest << 8 | UInt64(byte) }
    return key.bytes.count >= 8 ? digest : digest << (8 * (8 - UInt64(key.bytes.count)))
  }

  static var isDigestExact: Bool { false }
}
