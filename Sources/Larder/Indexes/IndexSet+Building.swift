#if canImport(Glibc)
  internal import Dispatch
  internal import Glibc
#endif

extension IndexSet {
  /// Starts to log changes for an index that will be built from the present records.
  mutating func startBuilding(_ index: Int) {
    // An index that is already under construction keeps its log: an empty one would lose the changes so far.
    if case .absent = bodies[index] { bodies[index] = .building([]) }
  }

  /// Replaces an index under construction by the built one, after applying the changes since ``startBuilding(_:)``.
  mutating func finishBuilding(_ index: Int, _ built: IndexBody) {
    guard case .building(let log) = bodies[index] else { return }
    var body = built
    definitions[index].apply(log, to: &body)
    bodies[index] = followed(body, index)
  }

  /// Builds the missing ones of the given indexes, on this thread and as many others as there are cores.
  mutating func build(_ wanted: [Int], from records: RecordMap) {
    let missing = wanted.filter { !isBuilt($0) }
    if missing.isEmpty { return }
    for (index, body) in zip(missing, built(missing, over: records.ordered())) { bodies[index] = followed(body, index) }
  }

  /// Returns the wanted indexes over the given records, which are in the order of their keys.
  ///
  /// Cost: one pass over the records for all indexes together. It decodes records that are not decoded yet, reads and sorts their
  /// properties, then joins the parts, all indexes in parallel. No decoded value is cached in its record, because most are never read.
  /// Blocks the thread: `explain` and a snapshot's word search run it on the caller's thread, everything else on a thread that may block.
  func built(_ wanted: [Int], over slots: [RecordSlot]) -> [IndexBody] {
    let bodies = gathered(wanted, over: slots)
    if slots.count >= FreedMemory.many { FreedMemory.giveBack() }
    return bodies
  }

  // A function of its own, so that its temporary parts are freed before `built` returns memory to the system.
  private func gathered(_ wanted: [Int], over slots: [RecordSlot]) -> [IndexBody] {
    let definitions = wanted.map { self.definitions[$0] }
    let parts = ConcurrentMap.blockingParts(slots) { IndexPortion.portions(definitions, $0) }
    // Parts of one: each index is joined on a thread of its own.
    return ConcurrentMap.blockingParts(Array(wanted.indices), of: 1) { (positions: ArraySlice<Int>) -> [IndexBody] in
      positions.map { position in joined(parts.map { $0[position] }, definitions[position].kind) }
    }.flatMap { $0 }
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

/// The part of an index that covers some of the records.
///
/// An index is built from portions that are made in parallel.
private enum IndexPortion: Sendable {
  case ordered(OrderedPortion)
  case geo([GeoEntry])
  case text(TextPortion)

  /// Returns a portion for each definition, and decodes each record once for all of them.
  static func portions(_ definitions: [IndexDefinition], _ slots: ArraySlice<RecordSlot>) -> [IndexPortion] {
    // All definitions belong to one collection, so the reader of any one decodes for all.
    guard let peek = definitions.first?.peek else { return [] }
    let gatherers = definitions.map(IndexGatherer.init)
    for slot in slots {
      // A record that does not decode is in no index.
      guard let value = peek(slot) else { continue }
      for gatherer in gatherers { gatherer.add(slot, value) }
    }
    return gatherers.map { $0.portion() }
  }
}

/// An accumulator of the entries of one index over some of the records.
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
    // Sorted here, on all cores, so that joining the parts only merges them.
    case .geo: .geo(places.sorted { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell })
    case .fullText: .text(words.finish())
    }
  }
}

/// Memory that the process has freed but the allocator still holds.
enum FreedMemory {
  /// Number of records from which a build leaves enough freed memory to return it.
  static let many = 10_000

  /// Returns whole free pages to the system.
  ///
  /// A build frees more memory than it keeps, in the heaps of several threads, and glibc holds that memory until the process ends. Other
  /// systems' allocators return pages by themselves. Cost: background time that grows with the heap, about 14 ms for a store of 100,000
  /// records.
  static func giveBack() {
    #if canImport(Glibc)
      DispatchQueue.global(qos: .utility).async {
        // Looked up at run time: no module map of glibc declares `malloc_trim`.
        guard let address = dlsym(nil, "malloc_trim") else { return }
        // 0 bytes of free memory are kept at the top of the heap.
        _ = unsafeBitCast(address, to: (@convention(c) (Int) -> CInt).self)(0)
      }
    #endif
  }
}
