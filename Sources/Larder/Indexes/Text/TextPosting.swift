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
  var postings: PersistentTree<TextPosting>

  var key: Term { term }
  /// Few, as copying a leaf counts the references of all its lists.
  static var leafCapacity: Int { 12 }
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
