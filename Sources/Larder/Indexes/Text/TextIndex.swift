/// The words of records: finds those that hold all words of a query, best first.
///
/// A copy costs O(1); adding or removing a record O(log n) for each of its words. A record may have several texts, which count as one.
/// Records without a word are not in the index.
struct TextIndex: Sendable {
  var terms = PersistentTree<TermEntry>()
  var documents = PersistentTree<TextDocument>()
  var numbers = PersistentTree<TextNumber>()
  var wordCount = 0
  var nextNumber: UInt32 = 0
  private var free = PersistentTree<FreeNumber>()

  /// The order of records with equal scores.
  let keys: KeyOrder

  init(keys: KeyOrder = .bytes) { self.keys = keys }

  /// Makes the index of many records, whose keys are all different, at once.
  init(_ records: some Sequence<(RecordSlot, [String])>, keys: KeyOrder = .bytes) {
    self.init([TextPortion(records)], keys: keys)
  }

  private func ordered(_ key: RecordKey) -> OrderedKey { OrderedKey(key: key, order: keys) }

  /// The number of records in the index.
  var count: Int { documents.count }

  /// Adds a record; if its key is in the index already, nothing happens and the result is false.
  @discardableResult mutating func insert(_ slot: RecordSlot, texts: [String]) -> Bool {
    guard numbers.find(ordered(slot.key)) == nil else { return false }
    let (frequencies, length) = Self.count(texts)
    guard length > 0 else { return true }
    let number = freeNumber()
    let rank = rank(of: slot.key)
    numbers.insert(TextNumber(key: ordered(slot.key), number: number, rank: rank))
    documents.insert(TextDocument(number: number, length: length, rank: rank, slot: slot))
    wordCount += Int(length)
    for (term, frequency) in frequencies { add(TextPosting(number: number, frequency: frequency, length: length), to: term) }
    return true
  }

  /// Removes the record with a key, and says whether it was there; `texts` are those it was inserted with.
  @discardableResult mutating func remove(_ key: RecordKey, texts: [String]) -> Bool {
    guard let number = numbers.remove(ordered(key))?.number, let document = documents.remove(number) else { return false }
    wordCount -= Int(document.length)
    free.insert(FreeNumber(key: number))
    var left = document.length
    for (term, _) in Self.count(texts).frequencies { left -= removePosting(of: number, from: term) }
    if left > 0 { sweep(number) }
    return true
  }

  /// Puts a new version of a record in place of the old one, which had `old` as its texts; adds it if it is not there.
  mutating func update(_ slot: RecordSlot, from old: [String], to new: [String]) {
    apply(CollectionOfOne(TextChange(old: (slot, old), new: (slot, new))))
  }

  /// Follows changes of records in their order.
  ///
  /// Cost: as one by one, but each word is gone to once, however many records have it.
  mutating func apply(_ changes: some Sequence<TextChange>) {
    var edits = PostingEdits()
    for change in changes {
      if let (slot, texts) = change.new {
        if !replace(slot, change.old?.texts ?? [], texts, &edits) {
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

  /// Replaces the texts of a record, but for its postings, whose edits are returned in `edits`.
  /// - Returns: `false` if it is not there, has other texts than the old ones, or would be left without a word; then nothing happens.
  private mutating func replace(_ slot: RecordSlot, _ old: [String], _ new: [String], _ edits: inout PostingEdits) -> Bool {
    guard let number = numbers.find(ordered(slot.key))?.number, let document = documents.find(number) else { return false }
    if old == new {
      documents.update(number) { $0.slot = slot }
      return true
    }
    let (before, oldLength) = Self.count(old)
    let (after, length) = Self.count(new)
    guard length > 0, oldLength == document.length else { return false }
    documents.update(number) { ($0.slot, $0.length) = (slot, length) }
    wordCount += Int(length) - Int(oldLength)
    for term in before.keys where after[term] == nil { edits.add(nil, number, term) }
    for (term, frequency) in after where length != oldLength || before[term] != frequency {
      edits.add(TextPosting(number: number, frequency: frequency, length: length), number, term)
    }
    return true
  }

  /// Makes edits of postings, word by word.
  private mutating func make(_ edits: inout PostingEdits) {
    for (term, edits) in edits.removeAll() {
      var isEmpty = false
      let isKnown = terms.update(term) { entry in
        for edit in edits {
          if let posting = edit.posting { entry.postings.insert(posting) } else { entry.postings.remove(edit.number) }
        }
        isEmpty = entry.postings.isEmpty
      }
      if isEmpty { terms.remove(term) }
      if isKnown { continue }
      var postings = Postings.many(PersistentTree())
      for edit in edits { if let posting = edit.posting { postings.insert(posting) } else { postings.remove(edit.number) } }
      if !postings.isEmpty { terms.insert(TermEntry(term: term, postings: postings)) }
    }
  }

  private mutating func add(_ posting: TextPosting, to term: Term) {
    if !terms.update(term, { $0.postings.insert(posting) }) {
      terms.insert(TermEntry(term: term, postings: .one(posting)))
    }
  }

  /// Removes the posting, and says how often the term was there.
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

  /// Removes a number from wherever it is left, for a caller that gave other texts than before: the number will be used again.
  private mutating func sweep(_ number: UInt32) {
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

  /// Returns a number that no record has, the least of those given back first.
  private mutating func freeNumber() -> UInt32 {
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
  /// Returns the room between ranks at first: 2⁴⁰, less for more than four million records.
  static func rankStep(count: Int) -> UInt64 { min(1 << 40, (1 << 62) / UInt64(max(1, count))) }

  /// Returns a rank between those beside a key; the same as one of them if there is no room left.
  private func rank(of key: RecordKey) -> UInt64 {
    // Keys often ascend: a short step leaves room for the next.
    let stride: UInt64 = 1 << 24
    switch numbers.neighbours(of: ordered(key)) {
    case (nil, nil): return Self.firstRank
    case (let before?, nil): return before.rank + min(stride, (.max - before.rank) / 2)
    case (nil, let after?): return after.rank - min(stride, after.rank / 2)
    case (let before?, let after?): return before.rank + min(stride, (after.rank - before.rank) / 2)
    }
  }
}

/// A change of a record in an index of words: the texts that it had, and those that it has now.
struct TextChange {
  let old: (slot: RecordSlot, texts: [String])?
  let new: (slot: RecordSlot, texts: [String])?
}

/// Edits of the postings of words, which are gathered and then made word by word.
struct PostingEdits {
  private var edits: [(term: Term, edit: Edit)] = []

  /// The new posting of a record, or that it has none any more.
  struct Edit {
    let number: UInt32
    let posting: TextPosting?
  }

  mutating func add(_ posting: TextPosting?, _ number: UInt32, _ term: Term) {
    edits.append((term, Edit(number: number, posting: posting)))
  }

  /// Returns the edits of each word, those of one record in their order, and forgets them.
  mutating func removeAll() -> [(term: Term, edits: [Edit])] {
    let all = edits
    edits = []
    var groups: [(term: Term, edits: [Edit])] = []
    // In the order of the words, so that edits that are beside each other in the tree come one after the other.
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
