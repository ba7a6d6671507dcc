internal import Synchronization

/// The use of an automatic index: an ordered index that no schema declares, built after a query without an index has sorted many records.
///
/// A query that sorts by a property without an index reads every record. After such a query, Larder builds the order of the property in the
/// background, and the next query reads the order as it reads a declared index. Commits keep the order up to date. An automatic index is
/// removed after many changes without a use.
final class AutomaticIndex: Sendable {
  /// Number of records from which a scan is worth an automatic index.
  ///
  /// A scan of fewer records takes a few milliseconds.
  static let leastCount = 10_000
  /// Number of automatic indexes of a collection.
  static let limit = 4
  /// Number of queries without the use of an index after which another index may take its place.
  ///
  /// If every new order replaced an index, queries in five orders in turn would each scan all records, and build an index that no query
  /// reads.
  private static let patience: UInt64 = 16

  private let queries: QueryCount
  private let lastUseNumber: Atomic<UInt64>
  private let changes = Atomic<Int>(0)
  private let isWanted = Atomic(false)

  /// Counts a query that calls for an index.
  ///
  /// - Parameter queries: Count of the collection's queries that read or call for automatic indexes.
  init(_ queries: QueryCount) {
    self.queries = queries
    lastUseNumber = Atomic(queries.addOne())
  }

  /// Number that is greater the later the index was last used.
  var lastUse: UInt64 { lastUseNumber.load(ordering: .relaxed) }

  /// True if many queries have read or called for other automatic indexes since the last use of this one.
  var mayBeReplaced: Bool { lastUse + Self.patience <= queries.count }

  /// Counts a query that reads the index.
  func noteUse() {
    lastUseNumber.store(queries.addOne(), ordering: .relaxed)
    changes.store(0, ordering: .relaxed)
    allowReturn()
  }

  /// True if the index, after its removal, may be built again by the next query that calls for it.
  ///
  /// If a large write comes before every page, each page would otherwise build an index that no query reads.
  var mayReturn: Bool { isWanted.load(ordering: .relaxed) || mayBeReplaced }

  /// Lets the index be built again after its removal, although no query has read it.
  func allowReturn() { isWanted.store(true, ordering: .relaxed) }

  /// Counts a change of one record.
  ///
  /// - Returns: False after more than ``leastCount`` changes since the last use of the index.
  func isWorthChange() -> Bool {
    // Without a bound, an order that nobody reads any more would cost every later write some microseconds.
    changes.add(1, ordering: .relaxed).newValue <= Self.leastCount
  }
}

/// The number of queries of a collection that have read an automatic index or called for one.
final class QueryCount: Sendable {
  private let number = Atomic<UInt64>(0)

  var count: UInt64 { number.load(ordering: .relaxed) }

  /// Adds a query, and returns the new number.
  func addOne() -> UInt64 { number.add(1, ordering: .relaxed).newValue }
}

extension IndexSet {
  /// Number of indexes that the schema declares, which precede the automatic ones.
  var declaredCount: Int { definitions.firstIndex { $0.automatic != nil } ?? definitions.count }

  /// Adds an automatic index that is not built yet, and begins to log changes for its build.
  ///
  /// If the collection has as many automatic indexes as allowed, the new one takes the place of the one that was used longest ago.
  ///
  /// - Returns: The position of the index and the content that it replaces, or `nil` if the index is not added. The content is released by
  ///   the caller, because freeing a tree takes time for each of its entries.
  mutating func addAutomatic(_ definition: IndexDefinition) -> (position: Int, replaced: IndexBody)? {
    guard let position = placeOfAutomatic(definition) else { return nil }
    var definition = definition
    definition.holdsStubs = holdsStubs
    let replaced = position < bodies.count ? bodies[position] : .absent
    if position == definitions.count {
      definitions.append(definition)
      bodies.append(.building(ChangeLog()))
    } else {
      (definitions[position], bodies[position]) = (definition, .building(ChangeLog()))
    }
    return (position, replaced)
  }

  private func placeOfAutomatic(_ definition: IndexDefinition) -> Int? {
    if let known = definitions.firstIndex(where: { $0.isSame(as: definition) }) {
      // A removed automatic index keeps its place in the list, and is built again there.
      guard let removed = definitions[known].automatic, removed.mayReturn, case .absent = bodies[known] else { return nil }
      return known
    }
    let automatic = definitions.indices.dropFirst(declaredCount)
    if automatic.count < AutomaticIndex.limit { return definitions.count }
    if let removed = automatic.first(where: { if case .absent = bodies[$0] { true } else { false } }) { return removed }
    // An index that is being built keeps its place.
    let oldest = automatic.filter(isBuilt).min { (definitions[$0].automatic?.lastUse ?? 0) < (definitions[$1].automatic?.lastUse ?? 0) }
    return oldest.flatMap { definitions[$0].automatic?.mayBeReplaced == true ? $0 : nil }
  }

  /// Removes the automatic indexes, and returns their contents, whose release takes time for each entry.
  mutating func removeAutomatic() -> [IndexBody] {
    definitions.indices.dropFirst(declaredCount).map { index in
      defer { bodies[index] = .absent }
      return bodies[index]
    }
  }

  /// True if the index at a position is still the automatic index with a given definition, and is being built.
  func isBuilding(_ index: Int, _ definition: IndexDefinition) -> Bool {
    guard case .building = bodies[index] else { return false }
    return definitions[index].automatic === definition.automatic
  }
}
