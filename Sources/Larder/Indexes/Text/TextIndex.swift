/// A full-text index, which finds the records that hold all words of a query and sorts them by score.
///
/// A copy of the index costs O(1). Adding or removing a record costs O(log n) for each of its words. A record may have several texts, which
/// the index treats as one text. Records without a word are not in the index.
struct TextIndex: Sendable {
  var terms = PersistentTree<TermEntry>()
  var documents = PersistentTree<TextDocument>()
  var numbers = PersistentTree<TextNumber>()
  var wordCount = 0
  var nextNumber: UInt32 = 0
  private var free = PersistentTree<FreeNumber>()

  /// Order of record keys, by which records with equal scores are sorted.
  let keys: KeyOrder

  init(keys: KeyOrder = .bytes) { self.keys = keys }

  /// Creates the index of many records at once.
  ///
  /// The keys of the records must all be different.
  init(_ records: some Sequence<(RecordSlot, [String])>, keys: KeyOrder = .bytes) {
    self.init([TextPortion(records)], keys: keys)
  }

  private func ordered(_ key: RecordKey) -> OrderedKey { OrderedKey(key: key, order: keys) }

  /// Number of records in the index, which leaves out records without a word.
  var count: Int { documents.count }

  /// Adds a record and returns true, or changes nothing and returns false if its key is already in the index.
  @discardableResult mutating func insert(_ slot: RecordSlot, texts: [String]) -> Bool {
    guard numbers.find(ordered(slot.key)) == nil else { return false }
    let (frequencies, length, digest) = Self.count(texts)
    // No search can find a record without words, so such a record gets no entry.
    guard length > 0 else { return true }
    let number = freeNumber()
    let rank = rank(of: slot.key)
    numbers.insert(TextNumber(key: ordered(slot.key), number: number, rank: rank))
    documents.insert(TextDocument(number: number, length: length, digest: digest, rank: rank, slot: slot))
    wordCount += Int(length)
    for (term, frequency) in frequencies { add(TextPosting(number: number, frequency: frequency, length: length), to: term) }
    return true
  }

  /// Removes a record and returns true, or returns false if the index does not hold the record.
  ///
  /// `texts` should be the texts of the record's insertion. With other texts, `remove` must search the posting lists of all words for the
  /// record.
  @discardableResult mutating func remove(_ key: RecordKey, texts: [String]) -> Bool {
    guard let number = numbers.remove(ordered(key))?.number, let document = documents.remove(number) else { return false }
    wordCount -= Int(document.length)
    free.insert(FreeNumber(key: number))
    var left = document.length
    // The subtraction wraps, since two texts of equal digests may have left the index with more postings than the record has words.
    for (term, _) in Self.count(texts).frequencies { left &-= removePosting(of: number, from: term) }
    // If `left` is not 0, some postings of the record are in the lists of words that `texts` does not hold. If postings of a removed record
    // were left in the index, searches would count them for the next record that gets the same record number.
    if left != 0 { sweep(number) }
    return true
  }

  /// Replaces a record that had the texts `old` by a new version, or adds the record if the index does not hold it.
  mutating func update(_ slot: RecordSlot, from old: [String], to new: [String]) {
    apply(CollectionOfOne(TextChange(old: (slot, old), new: (slot, new))))
  }

  /// Applies changes of records to the index, in the order of the writes.
  ///
  /// Cost: the same as for single changes, except that successive replacements of records edit the posting list of each word once.
  mutating func apply(_ changes: some Sequence<TextChange>) {
    var edits = PostingEdits()
    for change in changes {
      if let (slot, texts) = change.new {
        if !replace(slot, old: change.old?.texts ?? [], new: texts, edits: &edits) {
          // The gathered edits of earlier changes are applied before `remove` and `insert`, which change posting lists directly.
          make(&edits)
          if let old = change.old { remove(slot.key, texts: old.texts) }
          insert(slot, texts: texts)
        }
      } else if let (slot, texts) = change.old {
        make(&edits)
        remove(slot.key, texts: texts)
      }
    }
    make(&edits)
  }

  /// Replaces a record and its length, and adds the edits of its postings to `edits` without applying them.
  ///
  /// - Returns: False if the index does not hold the record, if the record was indexed with other texts than `old`, or if `new` has no
  ///   word. If `replace` returns false, the index is unchanged.
  private mutating func replace(_ slot: RecordSlot, old: [String], new: [String], edits: inout PostingEdits) -> Bool {
    guard let number = numbers.find(ordered(slot.key))?.number, let document = documents.find(number) else { return false }
    // Most updates do not change the texts. If the texts are equal, only the stored record is replaced, without counting words or reading
    // posting lists.
    if old == new {
      documents.update(number) { $0.slot = slot }
      return true
    }
    let (before, oldLength, oldDigest) = Self.count(old)
    let (after, length, digest) = Self.count(new)
    // A type may decode the same bytes to other texts each time. If the record was indexed with other texts than `old`, edits for the texts
    // in `old` would leave some of its postings in the index.
    guard length > 0, oldLength == document.length, oldDigest == document.digest else { return false }
    documents.update(number) { ($0.slot, $0.length, $0.digest) = (slot, length, digest) }
    wordCount += Int(length) - Int(oldLength)
    for term in before.keys where after[term] == nil { edits.add(nil, of: number, for: term) }
    // Each posting of a record holds the record's length, so a new length changes all postings of the record.
    for (term, frequency) in after where length != oldLength || before[term] != frequency {
      edits.add(TextPosting(number: number, frequency: frequency, length: length), of: number, for: term)
    }
    return true
  }

  /// Applies the gathered edits to the posting lists, word by word, and empties `edits`.
  private mutating func make(_ edits: inout PostingEdits) {
    for (term, edits) in edits.removeAll() {
      var isEmpty = false
      let isKnown = terms.update(term) { entry in
        for edit in edits {
          if let posting = edit.posting { entry.postings.insert(posting) } else { entry.postings.remove(edit.number) }
        }
        isEmpty = entry.postings.isEmpty
      }
      // A word that no record holds any more is removed from the index. The entry of a word without records would take memory, and searches
      // for a prefix of the word would read the entry.
      if isEmpty { terms.remove(term) }
      if isKnown { continue }
      var postings = Postings.many(PersistentTree())
      for edit in edits { if let posting = edit.posting { postings.insert(posting) } else { postings.remove(edit.number) } }
      // If a record got a new word and lost it again within the batch, the word's posting list is empty and gets no entry.
      if !postings.isEmpty { terms.insert(TermEntry(term: term, postings: postings)) }
    }
  }

  private mutating func add(_ posting: TextPosting, to term: Term) {
    if !terms.update(term, { $0.postings.insert(posting) }) {
      terms.insert(TermEntry(term: term, postings: .one(posting)))
    }
  }

  /// Removes the posting of a record from the list of a word, and returns the word's frequency in the record.
  private mutating func removePosting(of number: UInt32, from term: Term) -> UInt32 {
    var frequency: UInt32 = 0
    var isEmpty = false
    terms.update(term) { entry in
      frequency = entry.postings.remove(number)?.frequency ?? 0
      isEmpty = entry.postings.isEmpty
    }
    if isEmpty { terms.remove(term) }
    return frequency
  }

  /// Removes all postings of a record number, so that a new record can get the number, if the record's old texts are not known.
  private mutating func sweep(_ number: UInt32) {
    // The words are collected before the first removal, because a removal changes the tree that the loop reads.
    var holders: [Term] = []
    terms.forEachLeaf { leaf in
      for entry in leaf where entry.postings.find(number) != nil { holders.append(entry.term) }
    }
    for term in holders { _ = removePosting(of: number, from: term) }
  }

  private static func count(_ texts: [String]) -> (frequencies: [Term: UInt32], length: UInt32, digest: UInt32) {
    var folding = TextFolding()
    var frequencies: [Term: UInt32] = [:]
    var length: UInt32 = 0
    for text in texts {
      folding.words(in: text) { term, _ in
        frequencies[term, default: 0] += 1
        length += 1
      }
    }
    return (frequencies, length, frequencies.reduce(0) { $0 &+ $1.key.digest &* $1.value })
  }

  /// Returns an unused record number: the least number of a removed record, or the next new number.
  private mutating func freeNumber() -> UInt32 {
    // The numbers of removed records are reused. If every insertion took a new record number, the tables of a search, which are indexed by
    // record number, would grow with every insertion.
    if let number = free.first?.key {
      free.remove(number)
      return number
    }
    defer { nextNumber += 1 }
    return nextNumber
  }
}

extension TextIndex {
  /// Rank of the first record of a new index.
  ///
  /// A rank is a number by which records sort in the order of their keys.
  static var firstRank: UInt64 { 1 << 62 }
  /// Returns the distance between the ranks of neighbouring records in a new index: 2⁴⁰, or less for more than four million records.
  static func rankStep(count: Int) -> UInt64 { min(1 << 40, (1 << 62) / UInt64(max(1, count))) }

  /// Returns a rank between the ranks of the neighbouring record keys, or the lower of these ranks if no number lies between them.
  private func rank(of key: RecordKey) -> UInt64 {
    // Records are often inserted in ascending order of their keys. A short distance to the previous key's rank leaves numbers for the ranks
    // of the next keys.
    let stride: UInt64 = 1 << 24
    switch numbers.neighbours(of: ordered(key)) {
    case (nil, nil): return Self.firstRank
    // The distance is at most half of the numbers that are left, so that the addition and the subtraction never overflow.
    case (let before?, nil): return before.rank + min(stride, (.max - before.rank) / 2)
    case (nil, let after?): return after.rank - min(stride, after.rank / 2)
    case (let before?, let after?): return before.rank + min(stride, (after.rank - before.rank) / 2)
    }
  }
}

/// A change of a record in a full-text index: `old` is `nil` for an insertion, and `new` is `nil` for a removal.
struct TextChange {
  let old: (slot: RecordSlot, texts: [String])?
  let new: (slot: RecordSlot, texts: [String])?
}

/// A batch of edits of posting lists, which are gathered record by record and applied word by word.
struct PostingEdits {
  private var edits: [(term: Term, edit: Edit)] = []

  /// The new posting of a record for a word, or `nil` if the record no longer has the word.
  struct Edit {
    let number: UInt32
    let posting: TextPosting?
  }

  mutating func add(_ posting: TextPosting?, of number: UInt32, for term: Term) {
    edits.append((term, Edit(number: number, posting: posting)))
  }

  /// Returns the edits grouped by word, with the edits of each word in the order in which they were added, and empties the batch.
  mutating func removeAll() -> [(term: Term, edits: [Edit])] {
    let all = edits
    edits = []
    var groups: [(term: Term, edits: [Edit])] = []
    // The groups are in the order of the words, so that successive edits change the same nodes of the tree of words.
    for position in all.indices.sorted(by: { all[$0].term == all[$1].term ? $0 < $1 : all[$0].term < all[$1].term }) {
      let (term, edit) = all[position]
      if groups.last?.term == term {
        groups[groups.count - 1].edits.append(edit)
      } else {
        groups.append((term, [edit]))
      }
    }
    return groups
  }
}
