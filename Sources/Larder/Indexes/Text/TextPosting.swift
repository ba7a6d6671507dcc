/// A posting: the occurrence of a word in one record, with its frequency and the record's length, which ranking needs.
struct TextPosting: TreeEntry {
  typealias Summary = NoSummary<TextPosting>

  /// Number of the record in the index, which is small because numbers are reused after a removal.
  var number: UInt32
  var frequency: UInt32
  var length: UInt32

  var key: UInt32 { number }
}

/// A word with its posting list, as an entry of the tree of words.
struct TermEntry: TreeEntry {
  typealias Summary = NoSummary<TermEntry>

  let term: Term
  var postings: Postings

  var key: Term { term }
  /// Small leaves, because copying a leaf retains all its lists.
  static var leafCapacity: Int { 12 }
}

/// The posting list of a word: a tree, or a single posting for a word that occurs in one record, as most do.
enum Postings: Sendable {
  case one(TextPosting)
  case many(PersistentTree<TextPosting>)

  init(sorted postings: [TextPosting]) {
    self = postings.count == 1 ? .one(postings[0]) : .many(PersistentTree(sorted: postings))
  }

  var count: Int { if case .many(let tree) = self { tree.count } else { 1 } }
  var isEmpty: Bool { count == 0 }

  /// List as a tree, which is created on the spot for a single record.
  var tree: PersistentTree<TextPosting> {
    switch self {
    case .one(let posting): PersistentTree(sorted: [posting])
    case .many(let tree): tree
    }
  }

  /// Visits the postings by ascending record number.
  ///
  /// Inlined, because it runs for each spelling of a prefix, and a call for each posting would dominate.
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
    // A new posting of the same record replaces the old one and makes no tree.
    if case .one(let present) = self, present.number == posting.number {
      self = .one(posting)
    } else {
      edit { $0.insert(posting) }
    }
  }

  @discardableResult mutating func remove(_ number: UInt32) -> TextPosting? { edit { $0.remove(number) } }

  @discardableResult private mutating func edit(_ body: (inout PersistentTree<TextPosting>) -> TextPosting?) -> TextPosting? {
    var tree = tree
    // Emptied while the tree changes, so that the tree has one owner and changes in place.
    self = .many(PersistentTree())
    defer { self = .many(tree) }
    return body(&tree)
  }
}

/// A record of a full-text index, by its record number.
struct TextDocument: TreeEntry {
  typealias Summary = NoSummary<TextDocument>

  let number: UInt32
  var length: UInt32
  /// Number that never descends where record keys ascend, and compares faster than they do.
  ///
  /// Several records may share a rank.
  var rank: UInt64
  var slot: RecordSlot

  var key: UInt32 { number }
  /// Small leaves, because copying a leaf retains each record in it.
  static var leafCapacity: Int { 12 }

  /// Returns true if the record's key comes before the other's.
  func precedes(_ other: TextDocument, _ keys: KeyOrder) -> Bool {
    rank == other.rank ? keys.isBefore(slot.key, other.slot.key) : rank < other.rank
  }
}

/// The record number of a key in a full-text index.
struct TextNumber: TreeEntry {
  typealias Summary = NoSummary<TextNumber>

  let key: OrderedKey
  let number: UInt32
  let rank: UInt64

  static func digest(_ key: OrderedKey) -> UInt64 { key.order.head(of: key.key) }
  static var isDigestExact: Bool { false }
  /// Small leaves, because copying a leaf retains each key in it.
  static var leafCapacity: Int { 12 }
}

/// A record number that was given back and can be reused.
struct FreeNumber: TreeEntry {
  typealias Summary = NoSummary<FreeNumber>

  let key: UInt32
}
