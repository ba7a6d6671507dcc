#if canImport(Glibc)
  internal import Dispatch
  internal import Glibc
#endif

extension IndexSet {
  /// Begins to note what changes, for an index that is about to be built from the present records.
  mutating func startBuilding(_ index: Int) {
    if case .absent = bodies[index] { bodies[index] = .building([]) }
  }

  /// Publishes a built index, after what has changed since ``startBuilding(_:)`` was applied to it.
  mutating func finishBuilding(_ index: Int, _ built: IndexBody) {
    guard case .building(let log) = bodies[index] else { return }
    var body = built
    definitions[index].apply(log, to: &body)
    bodies[index] = followed(body, index)
  }

  /// Builds indexes of records at once, on this thread and as many others as there are cores.
  mutating func build(_ wanted: [Int], from records: RecordMap) {
    let missing = wanted.filter { !isBuilt($0) }
    if missing.isEmpty { return }
    for (index, body) in zip(missing, built(missing, over: records.ordered())) { bodies[index] = followed(body, index) }
  }

  /// Returns indexes over these records, which are in the order of their keys.
  ///
  /// Cost: one pass over the records for all of them, which decodes what was not touched yet, reads and sorts; then their parts are joined,
  /// all indexes at the same time. A record keeps no value for it: most are never asked for. Blocks the thread: `explain` and a snapshot's
  /// search for words run it on the caller's, everything else on one that may block.
  func built(_ wanted: [Int], over slots: [RecordSlot]) -> [IndexBody] {
    let bodies = gathered(wanted, over: slots)
    if slots.count >= FreedMemory.many { FreedMemory.giveBack() }
    return bodies
  }

  private func gathered(_ wanted: [Int], over slots: [RecordSlot]) -> [IndexBody] {
    let definitions = wanted.map { self.definitions[$0] }
    let parts = ConcurrentMap.blockingParts(slots) { IndexPortion.portions(definitions, $0) }
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

/// The part of an index that is made of some of the records; portions are made in parallel.
private enum IndexPortion: Sendable {
  case ordered(OrderedPortion)
  case geo([GeoEntry])
  case text(TextPortion)

  /// Returns a portion for each definition, of which all read the same values; each record is decoded once.
  static func portions(_ definitions: [IndexDefinition], _ slots: ArraySlice<RecordSlot>) -> [IndexPortion] {
    guard let peek = definitions.first?.peek else { return [] }
    let gatherers = definitions.map(IndexGatherer.init)
    for slot in slots {
      guard let value = peek(slot) else { continue }
      for gatherer in gatherers { gatherer.add(slot, value) }
    }
    return gatherers.map { $0.portion() }
  }
}

/// A gatherer of what one index has to know of some records.
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
    case .geo: .geo(places.sorted { $0.cell == $1.cell ? $0.key < $1.key : $0.cell < $1.cell })
    case .fullText: .text(words.finish())
    }
  }
}

/// The memory that was freed and that the process still holds.
enum FreedMemory {
  /// The number of records from which a build leaves much behind.
  static let many = 10_000

  /// Gives whole free pages back to the system.
  ///
  /// A build frees more than it keeps, in the heaps of several threads, which glibc holds until the process ends. Other systems' allocators
  /// give pages back by themselves. Cost: in the background, time that grows with the heap of the process; some 14 ms where that is a
  /// store of 100,000 records.
  static func giveBack() {
    #if canImport(Glibc)
      DispatchQueue.global(qos: .utility).async {
        // Looked up, since the header that declares it is in no module.
        guard let address = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(address, to: (@convention(c) (Int) -> CInt).self)(0)
      }
    #endif
  }
}
