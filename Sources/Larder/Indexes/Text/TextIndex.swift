/// A full-text index: finds the records that hold all words of a query, best first.
///
/// A copy costs O(1). Adding or removing a record costs O(log n) for each of its words. A record may have several texts, which count as
/// one. Records without a word are not in the index.
struct TextIndex: Sendable {
  var terms = PersistentTree<TermEntry>()
  var documents = PersistentTree<TextDocument>()
  var numbers = PersistentTree<TextNumber>()
  var wordCount = 0
  var nextNumber: UInt32 = 0
  private var free = PersistentTree<FreeNumber>()

  /// Order of records with equal scores.
  let keys: KeyOrder

  init(keys: KeyOrder = .bytes) { self.keys = keys }

  /// Creates the index of many records, whose keys must all be different, at once.
  init(_ records: some Sequence<(RecordSlot, [String])>, keys: KeyOrder = .bytes) {
    self.init([TextPortion(records)], keys: keys)
  }

  private func ordered(_ key: RecordKey) -> OrderedKey { OrderedKey(key: key, order: keys) }

  /// Number of records in the index.
  var count: Int { documents.count }

  /// Adds a record and returns true, or changes nothing and returns false if its key is already in the index.
  @discardableResult mutating func insert(_ slot: RecordSlot, texts: [String]) -> Bool {
    guard numbers.find(ordered(slot.key)) == nil else { return false }
    let (frequencies, length) = Self.count(texts)
    // A record without words is no duplicate, but it needs no entry.
    guard length > 0 else { return true }
    let number = freeNumber()
    let rank = rank(of: slot.key)
    numbers.insert(TextNumber(key: ordered(slot.key), number: number, rank: rank))
    documents.insert(TextDocument(number: number, length: length, rank: rank, slot: slot))
    wordCount += Int(length)
    for (term, frequency) in frequencies { add(TextPosting(number: number, frequency: frequency, length: length), to: term) }
    return true
  }

  /// Removes a record and returns true, or returns false if it was not there.
  ///
  /// `texts` must be those of its insertion.
  @discardableResult mutating func remove(_ key: RecordKey, texts: [String]) -> Bool {
    guard let number = numbers.remove(ordered(key))?.number, let document = documents.remove(number) else { return false }
    wordCount -= Int(document.length)
    free.insert(FreeNumber(key: number))
    var left = document.length
    for (term, _) in Self.count(texts).frequencies { left -= removePosting(of: number, from: term) }
    // Some postings were not found under the words of `texts`. They would count for the next record with this number.
    if left > 0 { sweep(number) }
    return true
  }

  /// Replaces a record that had the texts `old` by a new version, or adds it if it is not there.
  mutating func update(_ slot: RecordSlot, from old: [String], to new: [String]) {
    apply(CollectionOfOne(TextChange(old: (slot, old), new: (slot, new))))
  }

  /// Applies changes of records, in their order.
  ///
  /// Cost: as for single changes, but each word's posting list is edited once, however many records have the word.
  mutating func apply(_ changes: some Sequence<TextChange>) {
    var edits = PostingEdits()
    for change in changes {
      if let (slot, texts) = change.new {
        if !replace(slot, old: change.old?.texts ?? [], new: texts, edits: &edits) {
          // The edits so far come first: the calls below change posting lists directly.
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

  /// Replaces the texts of a record, except for its postings, whose edits are added to `edits`.
  ///
  /// - Returns: False if the record is not there, has other texts than the old ones, or would have no word. Then nothing changes.
  private mutating func replace(_ slot: RecordSlot, old: [String], new: [String], edits: inout PostingEdits) -> Bool {
    guard let number = numbers.find(ordered(slot.key))?.number, let document = documents.find(number) else { return false }
    // The usual update: only the slot changes, and no posting list is read.
    if old == new {
      documents.update(number) { $0.slot = slot }
      return true
    }
    let (before, oldLength) = Self.count(old)
    let (after, length) = Self.count(new)
    // Another length shows that the index has other texts than `old`, and then the edits below would miss postings.
    guard length > 0, oldLength == document.length else { return false }
    documents.update(number) { ($0.slot, $0.length) = (slot, length) }
    wordCount += Int(length) - Int(oldLength)
    for term in before.keys where after[term] == nil { edits.add(nil, number, term) }
    // Each posting repeats the record's length, so a new length changes all of them.
    for (term, frequency) in after where length != oldLength || before[term] != frequency {
      edits.add(TextPosting(number: number, frequency: frequency, length: length), number, term)
    }
    return true
  }

  /// Applies edits to the posting lists, word by word.
  private mutating func make(_ edits: inout PostingEdits) {
    for (term, edits) in edits.removeAll() {
      var isEmpty = false
      let isKnown = terms.update(term) { entry in
        for edit in edits {
          if let posting = edit.posting { entry.postings.insert(posting) } else { entry.postings.remove(edit.number) }
        }
        isEmpty = entry.postings.isEmpty
      }
      // A word without records would keep its entry and be counted as a spelling of prefixes.
      if isEmpty { terms.remove(term) }
      if isKnown { continue }
      var postings = Postings.many(PersistentTree())
      for edit in edits { if let posting = edit.posting { postings.insert(posting) } else { postings.remove(edit.number) } }
      // A later edit of the batch may have removed the only record of a new word.
      if !postings.isEmpty { terms.insert(TermEntry(term: term, postings: postings)) }
    }
  }

  private mutating func add(_ posting: TextPosting, to term: Term) {
    if !terms.update(term, { $0.postings.insert(posting) }) {
      terms.insert(TermEntry(term: term, postings: .one(posting)))
    }
  }

  /// Removes the posting of a record from a word, and returns how often the word occurred.
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

  /// Removes a record number from every posting list, for a caller that passed other texts than before, so that it can be reused.
  private mutating func sweep(_ number: UInt32) {
    // Collected first: a removal would change the tree that is being read.
    var holders: [Term] = []
    terms.forEachLeaf { leaf in
      for entry in leaf where entry.postings.find(number) != nil { holders.append(entry.term) }
    }
    for term in holders { _ = removePosting(of: number, from: term) }
  }

  private static func count(_ texts: [String]) -> (frequencies: [Term: UInt32], length: UInt32) {
    var folding = TextFolding()
    var frequencies: [Term: UInt32] = [:]
    var length: UInt32 = 0
    for text in texts {
      folding.words(in: text) { term, _ in
        frequencies[term, default: 0] += 1
        length += 1
      }
    }
    return (frequencies, length)
  }

  /// Returns an unused record number, reusing the least one that was given back.
  private mutating func freeNumber() -> UInt32 {
    // Reused, so that tables by number do not grow with every removal.
    if let number = free.first?.key {
      free.remove(number)
      return number
    }
    defer { nextNumber += 1 }
    return nextNumber
  }
}

extension TextIndex {
  static var firstRank: UInt64 { 1 << 62 }
  /// Returns the initial distance between ranks: 2⁴⁰, or less for more than four million records.
  static func rankStep(count: Int) -> UInt64 { min(1 << 40, (1 << 62) / UInt64(max(1, count))) }

  /// Returns a rank between those of the neighbouring keys, or equal to one of them if there is no room left.
  private func rank(of key: RecordKey) -> UInt64 {
    // Keys often ascend, and a short step leaves room for the next ones.
    let stride: UInt64 = 1 << 24
    switch numbers.neighbours(of: ordered(key)) {
    case (nil, nil): return Self.firstRank
    // Half of the room at most, so that a rank never overflows.
    case (let before?, nil): return before.rank + min(stride, (.max - before.rank) / 2)
    case (nil, let after?): return after.rank - min(stride, after.rank / 2)
    case (let before?, let after?): return before.rank + min(stride, (after.rank - before.rank) / 2)
    }
  }
}

/// A change of a record in a full-text index: its slot and texts before and after, either of which is `nil` for an insertion or a removal.
struct TextChange {
  let old: (slot: RecordSlot, texts: [String])?
  let new: (slot: RecordSlot, texts: [String])?
}

/// A batch of edits of posting lists, gathered by record and applied by word.
struct PostingEdits {
  private var edits: [(term: Term, edit: Edit)] = []

  /// The new posting of a record for a word, or `nil` if the record no longer has the word.
  struct Edit {
    let number: UInt32
    let posting: TextPosting?
  }

  mutating func add(_ posting: TextPosting?, _ number: UInt32, _ term: Term) {
    edits.append((term, Edit(number: number, posting: posting)))
  }

  /// Returns the edits grouped by word, those of one record in their order, and empties the batch.
  mutating func removeAll() -> [(term: Term, edits: [Edit])] {
    let all = edits
    edits = []
    var groups: [(term: Term, edits: [Edit])] = []
    // In the order of the words, so that edits of neighbouring tree entries follow each other and hit the same nodes.
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
