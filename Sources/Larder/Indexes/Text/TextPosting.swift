/// A posting of a full-text index: the frequency of a word in one record, with the record's length in words, which the ranking needs.
struct TextPosting: TreeEntry {
  typealias Summary = NoSummary<TextPosting>

  /// Number of the record in the index.
  ///
  /// Record numbers stay small, because the number of a removed record is reused.
  var number: UInt32
  var frequency: UInt32
  var length: UInt32

  var key: UInt32 { number }
}

/// A word with its posting list, as an entry of the tree of words of a full-text index.
struct TermEntry: TreeEntry {
  typealias Summary = NoSummary<TermEntry>

  let term: Term
  var postings: Postings

  var key: Term { term }
  /// Leaves are small, because an edit that copies a leaf retains each posting list in the leaf.
  static var leafCapacity: Int { 12 }
}

/// The posting list of a word: a tree of postings, or a single posting without a tree, because most words occur in one record.
enum Postings: Sendable {
  case one(TextPosting)
  case many(PersistentTree<TextPosting>)

  init(sorted postings: [TextPosting]) {
    self = postings.count == 1 ? .one(postings[0]) : .many(PersistentTree(sorted: postings))
  }

  var count: Int { if case .many(let tree) = self { tree.count } else { 1 } }
  var isEmpty: Bool { count == 0 }

  /// The postings as a tree.
  ///
  /// For a list of a single posting, each call creates a new tree.
  var tree: PersistentTree<TextPosting> {
    switch self {
    case .one(let posting): PersistentTree(sorted: [posting])
    case .many(let tree): tree
    }
  }

  /// Visits the postings of the word by ascending record number.
  ///
  /// `forEach` is inlined, because a function call for each posting would take most of the time of a search for a prefix.
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
    // A new posting of the only record in the list replaces the old posting, and needs no tree.
    if case .one(let present) = self, present.number == posting.number {
      self = .one(posting)
    } else {
      edit { $0.insert(posting) }
    }
  }

  @discardableResult mutating func remove(_ number: UInt32) -> TextPosting? { edit { $0.remove(number) } }

  @discardableResult private mutating func edit(_ body: (inout PersistentTree<TextPosting>) -> TextPosting?) -> TextPosting? {
    var tree = tree
    // `self` is emptied while the tree changes, so that `tree` has one owner and changes in place. If the tree had a second owner, each
    // change would copy tree nodes.
    self = .many(PersistentTree())
    defer { self = .many(tree) }
    return body(&tree)
  }
}

/// A record of a full-text index, as an entry of the tree of records, which is sorted by record number.
struct TextDocument: TreeEntry {
  typealias Summary = NoSummary<TextDocument>

  let number: UInt32
  var length: UInt32
  /// Sum of the digests of the record's words.
  ///
  /// Texts with another sum are not those with which the record was indexed.
  var digest: UInt32
  /// Number that sorts records in the order of their keys and compares faster than a record key.
  ///
  /// Several records may have the same rank. Records of the same rank are sorted by comparing their keys.
  var rank: UInt64
  var slot: RecordSlot

  var key: UInt32 { number }
  /// Leaves are small, because an edit that copies a leaf retains each record in the leaf.
  static var leafCapacity: Int { 12 }

  /// Returns true if this record's key comes before the key of the other record.
  func precedes(_ other: TextDocument, _ keys: KeyOrder) -> Bool {
    rank == other.rank ? keys.isBefore(slot.key, other.slot.key) : rank < other.rank
  }
}

/// The record number and the rank of a record key in a full-text index, as an entry of the tree of keys.
struct TextNumber: TreeEntry {
  typealias Summary = NoSummary<TextNumber>

  let key: OrderedKey
  let number: UInt32
  let rank: UInt64

  static func digest(_ key: OrderedKey) -> UInt64 { key.order.head(of: key.key) }
  static var isDigestExact: Bool { false }
  /// Leaves are small, because an edit that copies a leaf retains each record key in the leaf.
  static var leafCapacity: Int { 12 }
}

/// The number of a removed record in a full-text index, which the index can give to a new record.
struct FreeNumber: TreeEntry {
  typealias Summary = NoSummary<FreeNumber>

  let key: UInt32
}
