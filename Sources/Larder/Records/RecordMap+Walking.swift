internal import HeapModule

/// Walks over the records of a map, in memory or in the storage.
extension RecordMap {
  /// Visits the records in no fixed order until `body` returns `false`.
  ///
  /// Cost: linear in the records, with a look-up for each record that changed since the base was made.
  /// - Throws: The errors of ``PagedRecords/forEach(after:_:)``, and no error if the records are in memory.
  func visit(_ body: (RecordSlot) -> Bool) throws(RepositoryError) {
    if isPaged { return try visitOneByOne(body) }
    for slot in unchanged() where !body(slot) { return }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in no fixed order until `body` returns `false`, and makes a record's object in memory only for the visit.
  ///
  /// Cost: the cost of ``visit(_:)``, and less if `body` returns `false` early.
  func visitOneByOne(_ body: (RecordSlot) -> Bool) throws(RepositoryError) {
    if let paged = base.paged {
      let overlay = overlay
      guard try paged.forEach({ overlay[$0.key] != nil || body($0) }) else { return }
    }
    for position in 0..<(isPaged ? 0 : base.count) {
      let slot = base.slot(at: position)
      if overlay.isEmpty || overlay[slot.key] == nil, !body(slot) { return }
    }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in the order of their ids until `body` returns `false`, beginning after `start` if that key is given.
  ///
  /// If the base is in the order of the ids, the cost is a binary search, a test of each key in the tree of changes, and one step for each
  /// visited record. If the base is in another order, the cost is a test of each key of the map, and a step in a heap for each visited
  /// record. `visitOrdered` decodes no record. If the records stay in the storage and the ids are numbers, the keys of all records are held
  /// in memory during the call.
  /// - Throws: The errors of ``PagedRecords/forEach(after:_:)``, and no error if the records are in memory.
  func visitOrdered(
    by order: KeyOrder, after start: RecordKey? = nil, _ body: (RecordSlot) -> Bool
  ) throws(RepositoryError) {
    func isBehind(_ key: RecordKey) -> Bool { start.map { order.isBefore($0, key) } ?? true }
    // A base in key order is sorted by the bytes of its keys, and the order of ids that are numbers differs from the order of bytes.
    let isBaseOrdered = order.isOfBytes && base.isSorted
    var waiting: [WaitingSlot] = []
    if isBaseOrdered {
      overlay.forEach { key, slot in
        if isBehind(key) { waiting.append(WaitingSlot(key: OrderedKey(key: key, order: order), slot: slot)) }
      }
    } else {
      try visit { slot in
        if isBehind(slot.key) {
          waiting.append(WaitingSlot(key: OrderedKey(key: slot.key, order: order), slot: isPaged ? slot.stub : slot))
        }
        return true
      }
    }
    // The records are put in a heap, because most callers read only one page of records. Sorting all records would take many times as long
    // as reading one page from a heap.
    var changes = Heap(waiting)
    func visitMerged(_ slot: RecordSlot) -> Bool {
      var isChanged = false
      while let next = changes.min, !(slot.key < next.key.key) {
        changes.removeMin()
        // An entry of the overlay (the tree of changes) with the key of a base record replaces the base record, or hides it if the record
        // was deleted.
        if next.key.key == slot.key { isChanged = true }
        if let changed = next.slot, !body(changed) { return false }
      }
      return isChanged || body(slot)
    }
    if isBaseOrdered, let paged = base.paged {
      guard try paged.forEach(after: start, visitMerged) else { return }
    } else if isBaseOrdered {
      for position in (start.map(base.end(of:)) ?? 0)..<base.count where !visitMerged(base.slot(at: position)) { return }
    }
    while let next = changes.popMin() {
      if let slot = next.slot, !body(try resolved(slot)) { return }
    }
  }

  /// A record that is still to be visited, with its key, or the key of a deleted record, with `nil` as the slot.
  private struct WaitingSlot: Comparable {
    let key: OrderedKey
    let slot: RecordSlot?

    static func == (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key == right.key }
    static func < (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key < right.key }
  }

  /// Returns the records of the base that did not change since the base was made.
  private func unchanged() -> [RecordSlot] {
    // Right after opening, the overlay (the tree of changes) is empty, so the slots of the base are returned without a copy.
    if overlay.isEmpty { return base.slots }
    // Changed records are marked by position, because looking up each record of the base in the tree of changes would hash every key of the
    // base.
    var isChanged = [Bool](repeating: false, count: base.count)
    overlay.forEach { key, _ in
      if let position = base.position(of: key) { isChanged[position] = true }
    }
    return zip(base.slots, isChanged).compactMap { $1 ? nil : $0 }
  }

  /// Largest number of records that ``forEachDoubtful(_:)`` visits.
  var doubtfulCount: Int { base.doubtfulCount + unchecked.count }

  /// Visits, in no fixed order, the records that are not known to decode.
  ///
  /// Cost: the first call examines every record. A later call examines only the records that were not known to decode after the previous
  /// call, and the records that changed since that call.
  /// - Throws: The errors of ``PagedRecords/forEach(after:_:)``, and no error if the records are in memory.
  func forEachDoubtful(_ visit: (RecordSlot) -> Void) throws(RepositoryError) {
    let overlay = overlay
    if let paged = base.paged {
      try paged.forEachDoubtful(unless: { overlay[$0] != nil }, visit)
    } else {
      for slot in base.unread() where overlay[slot.key] == nil { visit(slot) }
    }
    for slot in unchecked.unread() { visit(slot) }
  }

  /// Number of records that were not decoded yet, and number of records whose decoding has failed.
  ///
  /// Cost: the first read of `tally` examines each record. Later reads examine only the records that are not known to decode. Records that
  /// stay in the storage are not read, and count as not decoded until every record was tried.
  var tally: (untouched: Int, undecodable: Int) {
    get throws(RepositoryError) {
      guard !isPaged || base.paged?.doubtfulCount != nil else { return (base.count + unchecked.count, 0) }
      var (untouched, undecodable) = (0, 0)
      try forEachDoubtful { slot in
        switch slot.reading {
        case .untouched: untouched += 1
        case .unreadable: undecodable += 1
        case .readable: break
        }
      }
      return (untouched, undecodable)
    }
  }

  /// Returns the records of an older schema version, in no fixed order.
  ///
  /// Cost: none if the map has never had a record of an older version, otherwise linear in the records.
  ///
  /// - Returns: Stubs without values if the records stay in the storage, since all older records may not fit into memory.
  func older(than version: Int) throws(RepositoryError) -> [RecordSlot] {
    // Nearly every call returns at the comparison with the lower bound, because most collections have records of one version only.
    guard oldestSchemaVersion < version else { return [] }
    if isPaged {
      var older: [RecordSlot] = []
      try visitOneByOne { slot in
        if slot.schemaVersion < version { older.append(slot.stub) }
        return true
      }
      return older
    }
    let unchanged = base.slots.filter { $0.schemaVersion < version && overlay[$0.key] == nil }
    return unchanged + overlay.slots.filter { $0.schemaVersion < version }
  }

  /// Whether the map has records of an older schema version, or may have some in the storage.
  ///
  /// Cost: the cost of ``older(than:)``, but only up to the first record of an older version.
  func hasOlder(than version: Int) -> Bool {
    guard oldestSchemaVersion < version else { return false }
    // The overlay (the tree of changes) mostly has fewer records than the base, so it is searched before the base.
    if !overlay.visit({ ($1?.schemaVersion ?? version) >= version }) { return true }
    // A walk through the storage may take long. The migration makes it in the background, and ends at once if there is no older record.
    if isPaged { return true }
    return base.slots.contains { $0.schemaVersion < version && overlay[$0.key] == nil }
  }

  /// Whether ``ordered()`` has to sort only few records.
  var isOrdered: Bool { base.isSorted && overlay.count <= base.count / 16 }

  /// Returns all records in the order of their keys.
  ///
  /// Cost: linear if the base is in key order, as after opening a JSON file. The records that changed since the base was made are sorted in
  /// addition. Without a base in key order, all records are sorted. Records that stay in the storage are all read into memory.
  /// - Throws: The errors of ``PagedRecords/forEach(after:_:)``, and no error if the records are in memory.
  func ordered() throws(RepositoryError) -> [RecordSlot] {
    guard isPaged else { return merged(with: overlay.slots.sorted { $0.key < $1.key }) }
    // No memory is reserved for `count`, because a hostile file may have counted too many records.
    var slots: [RecordSlot] = []
    try visitOrdered(by: .bytes) { slot in
      slots.append(slot)
      return true
    }
    return slots
  }

  /// Returns all records in the order of their keys.
  ///
  /// - Parameter changed: The records that changed since the base was made, sorted by their keys.
  func merged(with changed: [RecordSlot]) -> [RecordSlot] {
    let unchanged = unchanged()
    let ordered = base.isSorted ? unchanged : unchanged.sorted { $0.key < $1.key }
    return changed.isEmpty ? ordered : ordered.merged(with: changed) { $0.key < $1.key }
  }
}
