/// The occurrence of a word in one record: its frequency, and the record's length, which ranking needs for each.
struct TextPosting: TreeEntry {
  typealias Summary = NoSummary<TextPosting>

  /// The number of the record in the index; small, and given again after a removal.
  var number: UInt32
  var frequency: UInt32
  var length: UInt32

  var key: UInt32 { number }
}

/// A word with the records that hold it.
struct TermEntry: TreeEntry {
  typealias Summary = NoSummary<TermEntry>

  let term: Term
  var postings: Postings

  var key: Term { term }
  /// Few, as copying a leaf counts the references of all its lists.
  static var leafCapacity: Int { 12 }
}

/// The records that hold a word: most words are in one, which needs no tree.
enum Postings: Sendable {
  case one(TextPosting)
  case many(PersistentTree<TextPosting>)

  init(sorted postings: [TextPosting]) {
    self = postings.count == 1 ? .one(postings[0]) : .many(PersistentTree(sorted: postings))
  }

  var count: Int { if case .many(let tree) = self { tree.count } else { 1 } }
  var isEmpty: Bool { count == 0 }

  /// The records as a tree, made where there is one record.
  var tree: PersistentTree<TextPosting> {
    switch self {
    case .one(let posting): PersistentTree(sorted: [posting])
    case .many(let tree): tree
    }
  }

  /// Visits the records by number.
  @inline(__always) func forEach(_ visit: (TextPosting) -> Void) {
    switch self {
    case .one(let posting): visit(posting)
    case .many(let tree): tree.forEachLeaf { leaf in for posting in leaf { visit(posting) } }
    }
  }

  func find(_ number: UInt32) -> TextPosting? {
    switch self {
    case .one(let posting): posting.number == number ? posting : nil
    case .many(let tree): tree.find(number)
    }
  }

  mutating func insert(_ posting: TextPosting) {
    if case .one(let present) = self, present.number == posting.number {
      self = .one(posting)
    } else {
      edit { $0.insert(posting) }
    }
  }

  @discardableResult mutating func remove(_ number: UInt32) -> TextPosting? { edit { $0.remove(number) } }

  @discardableResult private mutating func edit(_ body: (inout PersistentTree<TextPosting>) -> TextPosting?) -> TextPosting? {
    var tree = tree
    // Taken out while it is changed, so that it has one owner.
    self = .many(PersistentTree())
    defer { self = .many(tree) }
    return body(&tree)
  }
}

/// A record by its number.
struct TextDocument: TreeEntry {
  typealias Summary = NoSummary<TextDocument>

  let number: UInt32
  var length: UInt32
  /// Ascends with the keys of the records, though records may share one; compares faster than keys.
  var rank: UInt64
  var slot: RecordSlot

  var key: UInt32 { number }
  /// Few, as copying a leaf counts the references to the records.
  static var leafCapacity: Int { 12 }

  /// Whether its key comes first.
  func precedes(_ other: TextDocument, _ keys: KeyOrder) -> Bool {
    rank == other.rank ? keys.isBefore(slot.key, other.slot.key) : rank < other.rank
  }
}

/// The number of a record by its key.
struct TextNumber: TreeEntry {
  typealias Summary = NoSummary<TextNumber>

  let key: OrderedKey
  let number: UInt32
  let rank: UInt64

  static func digest(_ key: OrderedKey) -> UInt64 { key.order.head(of: key.key) }
  static var isDigestExact: Bool { false }
  /// Few, as copying a leaf counts the references to the keys.
  static var leafCapacity: Int { 12 }
}

/// A number that no record has any more.
struct FreeNumber: TreeEntry {
  typealias Summary = NoSummary<FreeNumber>

  let key: UInt32
}
