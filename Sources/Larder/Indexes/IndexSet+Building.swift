internal import Foundation

#if canImport(Glibc)
  internal import Dispatch
  internal import Glibc
#endif

extension IndexSet {
  /// Starts to log changes of records for an index that will be built from the records of the current commit.
  mutating func startBuilding(_ index: Int) {
    // An index under construction keeps its log. A new empty log would lose the changes since the start of its build.
    switch bodies[index] {
    case .absent: bodies[index] = .building(ChangeLog())
    // An index in the storage that does not fit the records is built anew.
    case .stored(let entries) where entries.run.isUnfit: bodies[index] = .building(ChangeLog())
    case .stored, .building, .followed, .ordered, .geo, .text: break
    }
  }

  /// Ends the log of an index whose build has failed, so that a later query builds the index anew.
  mutating func cancelBuilding(_ index: Int) { if case .building = bodies[index] { bodies[index] = .absent } }

  /// Replaces an index under construction by the built index, after applying the changes logged since ``startBuilding(_:)``.
  mutating func finishBuilding(_ index: Int, _ built: IndexBody) {
    guard case .building(let log) = bodies[index] else { return }
    var body = built
    var changes: [IndexChange] = []
    log.forEach { change in
      changes.append(change)
      return true
    }
    definitions[index].apply(changes, to: &body)
    setBody(body, of: index)
  }

  /// Sets the content of an index that commits follow from now on.
  ///
  /// A unique index applies each change at once, because each write must be compared with the newest entries. An index with the log of
  /// ``FollowedIndex`` applies changes later.
  private mutating func setBody(_ built: IndexBody, of index: Int) {
    if definitions[index].isUnique { enforcedIndexes.insert(index) }
    bodies[index] = definitions[index].isUnique ? built : .followed(FollowedIndex(built))
  }

  /// Builds those of the wanted indexes that are not built yet, in parallel on all cores, and blocks until they are built.
  ///
  /// - Throws: The errors of ``built(_:over:)``, with no index built.
  mutating func build(_ wanted: [Int], from records: RecordMap) throws(RepositoryError) {
    let missing = wanted.filter { !isBuilt($0) }
    if !missing.isEmpty { try rebuild(missing, from: records) }
  }

  /// Builds indexes in memory also if the storage has them.
  ///
  /// - Throws: The errors of ``built(_:over:)``, with no index built.
  mutating func rebuild(_ wanted: [Int], from records: RecordMap) throws(RepositoryError) {
    for (index, body) in zip(wanted, try built(wanted, over: records)) { setBody(body, of: index) }
  }

  /// Builds the wanted indexes over the records of a collection, and returns the indexes.
  ///
  /// Cost: one pass over the records for all indexes together. The pass decodes records that are not decoded yet, and reads and sorts the
  /// indexed properties in portions. The portions of each index are then merged, all indexes in parallel. The build does not cache the
  /// decoded values in their records, because most of the values are never read again. `built` blocks its thread. `explain` and a
  /// snapshot's word search call `built` on the thread of their own caller. All other callers call `built` on a thread that may block.
  /// - Throws: The errors of ``RecordMap/ordered()``.
  func built(_ wanted: [Int], over records: RecordMap) throws(RepositoryError) -> [IndexBody] {
    let bodies = try gathered(wanted, over: records)
    if records.count >= FreedMemory.many { FreedMemory.giveBack() }
    return bodies
  }

  // `gathered` is a function of its own, so that the portions of the indexes are freed before `built` returns free memory to the system.
  private func gathered(_ wanted: [Int], over records: RecordMap) throws(RepositoryError) -> [IndexBody] {
    let definitions = wanted.map { self.definitions[$0] }
    var parts: [[IndexPortion]] = []
    func gather(_ slots: [RecordSlot]) { parts += ConcurrentMap.blockingParts(slots) { IndexPortion.portions(definitions, $0) } }
    if records.isPaged {
      try Self.forEachBlock(of: records) { block in
        gather(block)
        return true
      }
    } else {
      gather(try records.ordered())
    }
    let portions = parts
    // The work is divided into parts of one index each, so that each index is merged from its portions on a thread of its own.
    return ConcurrentMap.blockingParts(Array(wanted.indices), of: 1) { (positions: ArraySlice<Int>) -> [IndexBody] in
      positions.map { position in joined(portions.map { $0[position] }, definitions[position].kind) }
    }.flatMap { $0 }
  }

  /// Visits the records of a collection in blocks until `body` returns `false`.
  ///
  /// Records that stay in the storage are read in blocks, because all of them together may not fit into memory.
  /// - Throws: The errors of ``RecordMap/visitOrdered(by:after:_:)``.
  private static func forEachBlock(of records: RecordMap, _ body: ([RecordSlot]) -> Bool) throws(RepositoryError) {
    var (block, goesOn): ([RecordSlot], Bool) = ([], true)
    try records.visitOrdered(by: .bytes) { slot in
      block.append(slot)
      if block.count == blockSize {
        goesOn = body(block)
        block.removeAll(keepingCapacity: true)
      }
      return goesOn
    }
    if goesOn, !block.isEmpty { _ = body(block) }
  }

  /// Number of records in the storage that a build reads before it decodes them on all cores.
  private static let blockSize = 8_192

  /// Returns the sorted keys of ordered indexes for the storage, which are made in one pass over the records.
  ///
  /// `sortedKeys` blocks its thread. Memory holds one block of records, and at most about `limit` bytes of keys if there is a scratch file.
  /// - Returns: The keys of each wanted index. `nil` for an index that the storage cannot hold, because a record has no key or one that is
  ///   too long, or because the scratch file cannot be written.
  /// - Throws: The errors of ``RecordMap/visitOrdered(by:after:_:)``.
  func sortedKeys(
    _ wanted: [Int], over records: RecordMap, limit: Int, scratch: ScratchFile?
  ) throws(RepositoryError) -> [SortedKeys?] {
    let definitions = wanted.map { self.definitions[$0] }
    var sorters: [KeySorter?] = definitions.map { _ in KeySorter(limit: limit / max(definitions.count, 1), scratch: scratch) }
    try Self.forEachBlock(of: records) { block in
      let live = sorters.map { $0 != nil }
      for parts in ConcurrentMap.blockingParts(block, { UnsortedKeys.keys(of: $0, definitions, live) }) {
        for (position, keys) in parts.enumerated() {
          guard let keys else {
            sorters[position] = nil
            continue
          }
          // The scratch file of all sorters has given up its runs.
          do throws(RepositoryError) { try sorters[position]?.add(keys) } catch { sorters = sorters.map { _ in nil } }
        }
      }
      return sorters.contains { $0 != nil }
    }
    return sorters.map { $0?.finish() }
  }

  private func joined(_ portions: [IndexPortion], _ kind: IndexDefinition.Kind) -> IndexBody {
    switch kind {
    case .ordered:
      let parts = portions.compactMap { portion in if case .ordered(let part) = portion { part } else { nil } }
      return .ordered(PersistentTree(sorted: OrderedPortion.joined(parts)))
    case .geo:
      let parts = portions.compactMap { portion in if case .geo(let part) = portion { part } else { nil } }
      return .geo(GeoIndex(sorted: parts, keys: keys))
    case .fullText:
      let parts = portions.compactMap { portion in if case .text(let part) = portion { part } else { nil } }
      return .text(TextIndex(parts, keys: keys))
    }
  }
}

/// The part of an index that covers a range of the collection's records.
///
/// A build makes the portions of an index in parallel, and then merges them.
private enum IndexPortion: Sendable {
  case ordered(OrderedPortion)
  case geo([GeoEntry])
  case text(TextPortion)

  /// Returns one portion of each index over the given records, and decodes each record once for all indexes.
  static func portions(_ definitions: [IndexDefinition], _ slots: ArraySlice<RecordSlot>) -> [IndexPortion] {
    // All index definitions belong to one collection and decode its records to the same type, so the first definition decodes for all.
    guard let peek = definitions.first?.peek else { return [] }
    let gatherers = definitions.map(IndexGatherer.init)
    for slot in slots {
      // A record that does not decode has no values to index, so no index holds it.
      guard let value = peek(slot) else { continue }
      let held = definitions[0].held(slot)
      for gatherer in gatherers { gatherer.add(held, value) }
    }
    return gatherers.map { $0.portion() }
  }
}

extension UnsortedKeys {
  /// Returns the keys of records for each live index, or `nil` for an index that the storage cannot hold.
  fileprivate static func keys(
    of slots: ArraySlice<RecordSlot>, _ definitions: [IndexDefinition], _ live: [Bool]
  ) -> [UnsortedKeys?] {
    var keys: [UnsortedKeys?] = live.map { $0 ? UnsortedKeys() : nil }
    for slot in slots {
      // All definitions decode the records to the same type.
      let value = definitions.first?.peek(slot)
      for (position, definition) in definitions.enumerated() where keys[position] != nil {
        // A record that does not decode may have a key in a later version of the app, which the index in the storage could not notice.
        guard let entry = value.flatMap({ definition.entry(slot, of: $0) }), keys[position]?.append(entry) == true else {
          keys[position] = nil
          continue
        }
      }
    }
    return keys
  }
}

/// An accumulator of the entries of one index over a range of the collection's records.
private final class IndexGatherer {
  private let definition: IndexDefinition
  private var entries: [IndexEntry] = []
  private var places: [GeoEntry] = []
  private var words = TextPortion.Draft()

  init(_ definition: IndexDefinition) { self.definition = definition }

  func add(_ slot: RecordSlot, _ value: any DecodedRecord) {
    switch definition.kind {
    case .ordered: if let entry = definition.entry(slot, of: value) { entries.append(entry) }
    case .geo: if let place = definition.place(of: value) { places.append(GeoEntry(place, slot)) }
    case .fullText: if let texts = definition.texts(of: value) { words.add(slot, texts) }
    }
  }

  func portion() -> IndexPortion {
    switch definition.kind {
    case .ordered: .ordered(OrderedPortion(entries))
    // Each portion is sorted before the portions are merged, in parallel on all cores, so that building the index from its portions only
    // merges sorted lists.
    case .geo: .geo(places.sorted { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell })
    case .fullText: .text(words.finish())
    }
  }
}

/// A way to return memory to the operating system that the process has freed but the allocator still holds.
enum FreedMemory {
  /// Number of records from which an index build frees enough memory that returning the memory to the system is worthwhile.
  static let many = 10_000

  /// Returns whole free pages of memory to the system, in the background.
  ///
  /// The build of an index frees more memory than it keeps, in the heaps of several threads, and glibc holds that memory until the process
  /// ends. The allocators of other systems return free pages by themselves. Cost: background time that grows with the heap, about 14 ms for
  /// a store of 100,000 records.
  static func giveBack() {
    #if canImport(Glibc)
      DispatchQueue.global(qos: .utility).async {
        // `malloc_trim` is looked up at run time, because no module map of glibc declares it.
        guard let address = dlsym(nil, "malloc_trim") else { return }
        // The argument 0 means that no free memory is kept at the top of the heap.
        _ = unsafeBitCast(address, to: (@convention(c) (Int) -> CInt).self)(0)
      }
    #endif
  }
}
