/// A persistent dictionary from keys to records, in which copies share nodes and a change copies O(log n) nodes.
///
/// The dictionary is a hash tree whose nodes have up to 32 branches. The tree was written for `RecordMap` alone, because a
/// general-purpose hash tree would add ten times as much code to every app.
struct RecordTree: Sendable {
  private var root = Node()
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The record of a key, `.some(nil)` for a key that marks a deleted record, or `nil` for a key that is not in the tree.
  subscript(key: RecordKey) -> RecordSlot?? { value(forKey: key, hash: key.tableHash) }

  /// Returns the same entry as the subscript, for a key whose hash is already computed.
  func value(forKey key: RecordKey, hash: UInt64) -> RecordSlot?? {
    var (node, hash) = (root, hash)
    while true {
      switch node.entry(hash, key) {
      case .leaf(let leaf): return leaf.key == key ? .some(leaf.slot) : nil
      case .node(let child): (node, hash) = (child, hash >> Node.bits)
      case nil: return nil
      }
    }
  }

  /// Sets the record of a key.
  ///
  /// If `slot` is `nil`, the key stays in the tree and marks a deleted record.
  ///
  /// - Returns: The old entry of the key, in the form that the subscript returns.
  @discardableResult mutating func updateValue(_ slot: RecordSlot?, forKey key: RecordKey) -> RecordSlot?? {
    updateValue(slot, forKey: key, hash: key.tableHash)
  }

  /// Sets the record of a key whose hash is already computed, as ``updateValue(_:forKey:)`` does.
  mutating func updateValue(_ slot: RecordSlot?, forKey key: RecordKey, hash: UInt64) -> RecordSlot?? {
    let old = root.insert(Leaf(key: key, hash: hash, slot: slot), hash, level: 0)
    // A key that marks a deleted record is counted too, so the count grows only by a key that is new to the tree.
    if old == nil { count += 1 }
    return old
  }

  /// Removes a key and its record from the tree.
  mutating func removeValue(forKey key: RecordKey) { removeValue(forKey: key, hash: key.tableHash) }

  /// Removes a key, whose hash is already computed, and its record from the tree.
  mutating func removeValue(forKey key: RecordKey, hash: UInt64) { if root.remove(key, hash, level: 0) { count -= 1 } }

  /// Visits each key and its record in no fixed order.
  func forEach(_ visit: (RecordKey, RecordSlot?) -> Void) {
    _ = root.visit {
      visit($0.key, $0.slot)
      return true
    }
  }

  /// Visits each key and its record in no fixed order, until `body` returns `false`, and returns true if `body` never did.
  @discardableResult func visit(_ body: (RecordKey, RecordSlot?) -> Bool) -> Bool { root.visit { body($0.key, $0.slot) } }

  /// The records of the tree in no fixed order, without the keys that mark deleted records.
  var slots: [RecordSlot] {
    var slots: [RecordSlot] = []
    slots.reserveCapacity(count)
    forEach { if let slot = $1 { slots.append(slot) } }
    return slots
  }

  private struct Leaf: Sendable {
    let key: RecordKey
    let hash: UInt64
    let slot: RecordSlot?
  }

  private enum Entry: Sendable {
    case leaf(Leaf)
    case node(Node)
  }

  /// A node of the tree, which finds an entry by five bits of the key's hash.
  ///
  /// Keys whose whole hashes are equal are stored side by side in a node below the last level, called a bucket.
  private struct Node: Sendable {
    private var bitmap: UInt32 = 0
    private var entries: [Entry] = []

    static let bits = 5
    /// Level of the tree at which all 64 bits of a hash were used to choose branches.
    private static let lastLevel = (64 + bits - 1) / bits

    private static func bit(of hash: UInt64) -> UInt32 { 1 << UInt32(truncatingIfNeeded: hash & 31) }

    private func index(of bit: UInt32) -> Int { (bitmap & (bit - 1)).nonzeroBitCount }

    /// Whether this node has no bitmap: a bucket of keys with the same hash, or an empty node.
    private var isBucket: Bool { bitmap == 0 }

    /// Returns the entry of a key, whose hash no longer has the bits that the levels above this node have used.
    func entry(_ hash: UInt64, _ key: RecordKey) -> Entry? {
      if isBucket { return position(in: key).map { entries[$0] } }
      let bit = Self.bit(of: hash)
      return bitmap & bit == 0 ? nil : entries[index(of: bit)]
    }

    private func position(in key: RecordKey) -> Int? {
      entries.firstIndex { if case .leaf(let leaf) = $0 { leaf.key == key } else { false } }
    }

    mutating func insert(_ leaf: Leaf, _ hash: UInt64, level: Int) -> RecordSlot?? {
      // The branches above a bucket (a node below the last level) have used all bits of the hash. All keys in a bucket therefore have the
      // same hash, and are compared one by one.
      guard level < Self.lastLevel else {
        guard let position = position(in: leaf.key), case .leaf(let old) = entries[position] else {
          entries.append(.leaf(leaf))
          return nil
        }
        entries[position] = .leaf(leaf)
        return .some(old.slot)
      }
      let bit = Self.bit(of: hash)
      let index = index(of: bit)
      guard bitmap & bit != 0 else {
        bitmap |= bit
        entries.insert(.leaf(leaf), at: index)
        return nil
      }
      switch entries[index] {
      case .leaf(let old) where old.key == leaf.key:
        entries[index] = .leaf(leaf)
        return .some(old.slot)
      case .leaf(let old):
        var child = Node()
        // At the last level the hash is shifted by 65 bits. In Swift a shift by more bits than the number has gives zero.
        _ = child.insert(old, old.hash >> ((level + 1) * Self.bits), level: level + 1)
        _ = child.insert(leaf, hash >> Self.bits, level: level + 1)
        entries[index] = .node(child)
        return nil
      case .node(var child):
        // `entries` must not hold the child node while the child changes, because a second reference would make the change copy the child.
        entries[index] = .leaf(leaf)
        defer { entries[index] = .node(child) }
        return child.insert(leaf, hash >> Self.bits, level: level + 1)
      }
    }

    /// Removes a key, and replaces a child that has only one leaf left by that leaf.
    ///
    /// - Returns: Whether the key was in the node or below it.
    mutating func remove(_ key: RecordKey, _ hash: UInt64, level: Int) -> Bool {
      guard level < Self.lastLevel else {
        guard let position = position(in: key) else { return false }
        entries.remove(at: position)
        return true
      }
      let bit = Self.bit(of: hash)
      guard bitmap & bit != 0 else { return false }
      let index = index(of: bit)
      switch entries[index] {
      case .leaf(let leaf):
        guard leaf.key == key else { return false }
        entries.remove(at: index)
        bitmap &= ~bit
        return true
      case .node(var child):
        guard child.remove(key, hash >> Self.bits, level: level + 1) else { return false }
        // A child with a single leaf would add a step to each look-up of that leaf, so the leaf takes the place of the child.
        if child.entries.count == 1, case .leaf(let leaf) = child.entries[0] {
          entries[index] = .leaf(leaf)
        } else {
          entries[index] = .node(child)
        }
        return true
      }
    }

    func visit(_ body: (Leaf) -> Bool) -> Bool {
      for entry in entries {
        switch entry {
        case .leaf(let leaf): if !body(leaf) { return false }
        case .node(let child): if !child.visit(body) { return false }
        }
      }
      return true
    }
  }
}
