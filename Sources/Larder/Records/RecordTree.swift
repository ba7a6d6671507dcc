/// A persistent dictionary from keys to records: copies share nodes, and a change copies O(log n) of them.
///
/// It is a hash tree with 32 branches a node. It was made for this one use, because a general one adds ten times as much code to every app.
struct RecordTree: Sendable {
  private var root = Node()
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The record of a key, `.some(nil)` for a key without a record, or `nil` for a key that is not in the tree.
  subscript(key: RecordKey) -> RecordSlot?? { value(forKey: key, hash: key.tableHash) }

  /// Returns the entry of a key with a given hash, as the subscript does.
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

  /// Sets the entry of a key to a record, or to none.
  /// - Returns: The old entry, as the subscript returns it.
  @discardableResult mutating func updateValue(_ slot: RecordSlot?, forKey key: RecordKey) -> RecordSlot?? {
    updateValue(slot, forKey: key, hash: key.tableHash)
  }

  /// Sets the entry of a key with a given hash, as ``updateValue(_:forKey:)`` does.
  mutating func updateValue(_ slot: RecordSlot?, forKey key: RecordKey, hash: UInt64) -> RecordSlot?? {
    let old = root.insert(Leaf(key: key, hash: hash, slot: slot), hash, level: 0)
    // A key without a record has an entry too and is counted already.
    if old == nil { count += 1 }
    return old
  }

  /// Removes a key.
  mutating func removeValue(forKey key: RecordKey) { removeValue(forKey: key, hash: key.tableHash) }

  /// Removes a key with a given hash.
  mutating func removeValue(forKey key: RecordKey, hash: UInt64) { if root.remove(key, hash, level: 0) { count -= 1 } }

  /// Visits each key and its record in no order.
  func forEach(_ visit: (RecordKey, RecordSlot?) -> Void) {
    _ = root.visit {
      visit($0.key, $0.slot)
      return true
    }
  }

  /// Visits each key and its record in no order, and returns whether `body` never returned `false`, which ends the visit.
  @discardableResult func visit(_ body: (RecordKey, RecordSlot?) -> Bool) -> Bool { root.visit { body($0.key, $0.slot) } }

  /// The records in no order, without the keys that have none.
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

  /// A node of the tree: its entries by five bits of the hash.
  ///
  /// Keys with the same hash lie side by side in a last node, the bucket.
  private struct Node: Sendable {
    private var bitmap: UInt32 = 0
    private var entries: [Entry] = []

    static let bits = 5
    /// Level at which no bit of a hash is left.
    private static let lastLevel = (64 + bits - 1) / bits

    private static func bit(of hash: UInt64) -> UInt32 { 1 << UInt32(truncatingIfNeeded: hash & 31) }

    private func index(of bit: UInt32) -> Int { (bitmap & (bit - 1)).nonzeroBitCount }

    /// Whether this is a bucket of keys with the same hash, which has no bitmap.
    private var isBucket: Bool { bitmap == 0 }

    /// Returns the entry for a hash from which the bits of the levels above are shifted out.
    func entry(_ hash: UInt64, _ key: RecordKey) -> Entry? {
      if isBucket { return position(in: key).map { entries[$0] } }
      let bit = Self.bit(of: hash)
      return bitmap & bit == 0 ? nil : entries[index(of: bit)]
    }

    private func position(in key: RecordKey) -> Int? {
      entries.firstIndex { if case .leaf(let leaf) = $0 { leaf.key == key } else { false } }
    }

    mutating func insert(_ leaf: Leaf, _ hash: UInt64, level: Int) -> RecordSlot?? {
      // Keys with the same hash have no bits left to branch by and are compared one by one.
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
        // At the last level this shifts by more than 64 bits, which gives zero in Swift.
        _ = child.insert(old, old.hash >> ((level + 1) * Self.bits), level: level + 1)
        _ = child.insert(leaf, hash >> Self.bits, level: level + 1)
        entries[index] = .node(child)
        return nil
      case .node(var child):
        // The array gives the child up meanwhile, since a second reference would make the change copy it.
        entries[index] = .leaf(leaf)
        defer { entries[index] = .node(child) }
        return child.insert(leaf, hash >> Self.bits, level: level + 1)
      }
    }

    /// Removes a key, and replaces a child that has one leaf left by that leaf.
    /// - Returns: Whether the key was there.
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
        // A child with one leaf would lengthen each look-up for nothing.
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
