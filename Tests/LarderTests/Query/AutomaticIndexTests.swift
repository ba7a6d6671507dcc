import Foundation
import Testing

@testable import Larder

private struct Reading: Codable, Identifiable, Sendable, Equatable {
  let id: Int
  var value: Double
  var place: String?
  var kind: Kind

  var shade = Shade.pink
  var distance: Double { abs(value - 100) }

  enum Kind: String, Codable, IndexableValue { case pier, beach, rock }

  enum Shade: Int, Codable, CaseIterable, IndexableValue {
    case red = 11, pink = 12, blue = 21

    var indexValue: IndexValue { (rawValue / 10).indexValue }
  }

  static func random(_ id: Int, using random: inout SeededGenerator) -> Reading {
    Reading(
      id: id, value: Double(Int.random(in: 0..<500, using: &random)),
      place: [nil, "Brest", "Jogashima", "Ōita"].randomElement(using: &random) ?? nil,
      kind: [.pier, .beach, .rock].randomElement(using: &random) ?? .pier, shade: Shade.allCases[Int.random(in: 0..<3, using: &random)])
  }
}

/// The order that a query has needed without an index stays for the next queries, and changes no answer.
@Suite(.timeLimit(.minutes(15))) struct AutomaticIndexTests {
  private static let count = AutomaticIndex.leastCount

  private func repository(
    _ count: Int = count, options: StoreOptions = .init(), indexes: [RepositoryIndex<Reading>] = [], seed: UInt64 = 1
  ) async throws -> LocalRepository<Reading> {
    var random = SeededGenerator(seed)
    let readings = (0..<count).map { Reading.random($0, using: &random) }
    let repository = try await LocalRepository<Reading>(
      backend: InMemoryBackend(), schema: RepositorySchema("readings", indexes: indexes), options: options)
    try await repository.save(contentsOf: readings, durability: .buffered)
    return repository
  }

  private let byValue = Query<Reading>().sorted(by: \.value)

  private func name(_ repository: LocalRepository<Reading>, _ query: Query<Reading>) -> String? {
    repository.explain(query.limit(50)).index
  }

  /// The automatic indexes of the collection that are built or being built.
  private func automatic(_ repository: LocalRepository<Reading>) -> [String] {
    let indexes = repository.core.state.collections[repository.collection].indexes
    return indexes.definitions.indices.filter { index in
      if case .absent = indexes.bodies[index] { false } else { indexes.definitions[index].automatic != nil }
    }.map { indexes.definitions[$0].name }
  }

  @Test func theSecondPageReadsTheOrderOfTheFirst() async throws {
    let repository = try await repository()
    #expect(name(repository, byValue) == nil)
    let first = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    #expect(name(repository, byValue) == "automatic ordered(value)")
    #expect(repository.explain(byValue.limit(50)).examinedRows == 50)
    // The reverse order is the same index.
    #expect(name(repository, Query().sorted(by: \.value, .reverse)) == "automatic ordered(value)")
    let again = try await repository.page(byValue, limit: 50)
    #expect(again.items.map(\.id) == first.items.map(\.id) && again.next == first.next)
    #expect(automatic(repository) == ["automatic ordered(value)"])
  }

  /// Between the pages others write, and the index may be there or not at each of them.
  @Test(arguments: Seeds.list(3, for: "AutomaticIndexTests")) func everyPageIsThatOfTheSortedRecords(seed: UInt64) async throws {
    var random = SeededGenerator(seed)
    let repository = try await repository(Self.count + 300, seed: seed)
    let queries: [(Query<Reading>, (Reading, Reading) -> Bool)] = [
      (byValue, { $0.value == $1.value ? $0.id < $1.id : $0.value < $1.value }),
      (Query().sorted(by: \.place, .reverse), { $0.place == $1.place ? $0.id < $1.id : $1.place ?? "" < $0.place ?? "" }),
      (
        Query().sorted(by: \.kind).sorted(by: \.value, .reverse),
        { a, b in
          if a.kind != b.kind { return a.kind.rawValue < b.kind.rawValue }
          return a.value == b.value ? a.id < b.id : b.value < a.value
        }
      ),
    ]
    for step in 0..<Torture.count(45, full: 1_200) {
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        let id = Int.random(in: 0..<Self.count + 600, using: &random)
        if Bool.random(using: &random) {
          try await repository.save(.random(id, using: &random), durability: .buffered)
        } else {
          try await repository.delete(id, durability: .buffered)
        }
      }
      let (query, isBefore) = queries[step % queries.count]
      let snapshot = repository.snapshot
      let expected = snapshot.loadAll().sorted(by: isBefore)
      let (offset, limit) = (Int.random(in: 0..<40, using: &random), Int.random(in: 1..<60, using: &random))
      let slice = expected.dropFirst(offset).prefix(limit).map(\.id)
      #expect(try snapshot.fetch(query.offset(offset).limit(limit)).map(\.id) == slice)
      #expect(try await repository.fetch(query.offset(offset).limit(limit)).map(\.id) == slice)
      let page = try await repository.page(query, limit: limit)
      #expect(page.items.map(\.id) == expected.prefix(limit).map(\.id))
      if let next = page.next {
        let following = try await repository.page(query, after: next, limit: limit).items.map(\.id)
        #expect(following == expected.dropFirst(limit).prefix(limit).map(\.id))
      }
    }
    #expect(automatic(repository).count == 3)
    #expect(queries.allSatisfy { name(repository, $0.0) != nil })
  }

  /// The changes since the beginning of a build are in the index when it is there.
  @Test func aBuildBesideWritesLosesNone() async throws {
    let repository = try await repository(4 * Self.count)
    var random = SeededGenerator(7)
    _ = try await repository.page(byValue, limit: 50)
    var changes = 0
    while name(repository, byValue) == nil || changes < 5 {
      try Task.checkCancellation()
      var reading = Reading.random(changes, using: &random)
      reading.value = Double(-1 - changes)
      try await repository.save(reading, durability: .buffered)
      changes += 1
      // After 10,000 changes the index that nobody has read is removed.
      if changes % 5_000 == 0 { _ = try await repository.page(byValue, limit: 50) }
    }
    let found = try await repository.fetch(byValue.limit(50)).map(\.value)
    let expected = (0..<changes).reversed().prefix(50).map { Double(-1 - $0) }
    #expect(Array(found.prefix(changes)) == expected)
  }

  @Test func whereItSavesNothingNoneIsBuilt() async throws {
    let few = try await repository(Self.count - 1)
    _ = try await few.page(byValue, limit: 50)
    let off = try await repository(options: .init(buildsAutomaticIndexes: false))
    _ = try await off.page(byValue, limit: 50)
    let declared = try await repository(indexes: [.ordered(\.value)])
    _ = try await declared.page(byValue, limit: 50)
    let others = try await repository()
    _ = try await others.fetch(byValue)
    _ = try await others.fetch(byValue.limit(Self.count / 2))
    _ = try await others.fetch(byValue.where(#Predicate { $0.value > 3 }).limit(50))
    _ = try await others.fetch(byValue.filter { $0.value > 3 }.limit(50))
    _ = try await others.fetch(Query().limit(50))
    for repository in [few, off, declared, others] {
      for _ in 0..<200 {
        await Task.yield()
        await repository.core.executor.run {}
      }
      #expect(automatic(repository) == [])
    }
    #expect(name(declared, byValue) == "ordered(value)")
  }

  /// A condition that the index does not answer would make it read more than a scan.
  @Test func aQueryWithConditionsDoesNotUseIt() async throws {
    let repository = try await repository()
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    #expect(name(repository, byValue.filter { $0.kind == .rock }) == nil)
    #expect(name(repository, byValue.where(#Predicate { $0.id == 7 })) == nil)
    #expect(repository.explain(byValue).index == nil)
  }

  /// No query waits for an automatic index, and a use gives it its next 10,000 changes.
  @Test func usesKeepItAndNobodyWaitsForIt() async throws {
    let repository = try await repository()
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    var random = SeededGenerator(8)
    for _ in 0..<2 {
      for id in 0..<Self.count * 3 / 5 { try await repository.save(.random(id % 50, using: &random), durability: .buffered) }
      #expect(name(repository, byValue) != nil)
    }
    await repository.removeAutomaticIndexes()
    let run = try await repository.readyRun(byValue.limit(50))
    // A run that reads an index calls for none.
    #expect(run.automaticIndex != nil && automatic(repository) == [])
  }

  @Test func anIndexThatNobodyReadsGoesAndComesBack() async throws {
    let repository = try await repository()
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    var random = SeededGenerator(2)
    // `snapshot` plans no query, so the index is not used here.
    for id in 0...Self.count { try await repository.save(.random(id % 50, using: &random), durability: .buffered) }
    #expect(automatic(repository) == [])
    let expected = repository.snapshot.loadAll().sorted { $0.id < $1.id }
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    #expect(try await repository.loadAll().sorted { $0.id < $1.id }.map(\.id) == expected.map(\.id))
    #expect(try await repository.fetch(byValue.limit(1)).first?.value == expected.map(\.value).min())
    await repository.removeAutomaticIndexes()
    #expect(automatic(repository) == [])
  }

  /// If each new order replaced an index at once, five orders in turn would build one after the other and read none.
  @Test func aFifthOrderWaitsForItsPlace() async throws {
    let repository = try await repository()
    let queries: [Query<Reading>] = [
      byValue, Query().sorted(by: \.place), Query().sorted(by: \.kind), Query().sorted(by: \.place).sorted(by: \.value),
    ]
    for query in queries {
      _ = try await repository.page(query, limit: 50)
      try await until { name(repository, query) != nil }
    }
    #expect(automatic(repository).count == 4 && queries.allSatisfy { name(repository, $0) != nil })
    let fifth = Query<Reading>().sorted(by: \.kind).sorted(by: \.value)
    for _ in 0..<5 { _ = try await repository.page(fifth, limit: 50) }
    await repository.core.executor.run {}
    #expect(queries.allSatisfy { name(repository, $0) != nil })
    // Nobody reads the order by place any more.
    while name(repository, fifth) == nil {
      try Task.checkCancellation()
      _ = try await repository.page(fifth, limit: 50)
      for query in queries where query.order.count > 1 || query.order[0].keyPath != \Reading.place { _ = name(repository, query) }
    }
    #expect(automatic(repository).count == 4 && name(repository, queries[1]) == nil)
  }

  /// An index of more columns would give the order only within groups of records, which are sorted as a whole.
  @Test func anOrderOfFewerColumnsGetsItsOwn() async throws {
    let repository = try await repository()
    let (wide, narrow) = (Query<Reading>().sorted(by: \.kind).sorted(by: \.value), Query<Reading>().sorted(by: \.kind))
    for query in [wide, narrow] {
      _ = try await repository.page(query, limit: 50)
      try await until { name(repository, query) != nil }
    }
    #expect(automatic(repository) == ["automatic ordered(kind, value)", "automatic ordered(kind)"])
    #expect(repository.explain(narrow.limit(50)).examinedRows == 50)
  }

  /// No commit tells an index of what a computed property returns.
  @Test func computedPropertiesAreScanned() async throws {
    let repository = try await repository()
    #expect(try await repository.readyRun(Query().sorted(by: \.distance).limit(50)).automaticIndex == nil)
    #expect(try await repository.readyRun(byValue.sorted(by: \.distance).limit(50)).automaticIndex == nil)
    #expect(try await repository.readyRun(byValue.limit(50)).automaticIndex != nil)
  }

  /// An index value of an enumeration may stand for several of its values.
  @Test func groupsAreCountedByValue() async throws {
    let repository = try await repository()
    _ = try await repository.page(Query().sorted(by: \.shade), limit: 50)
    try await until { name(repository, Query().sorted(by: \.shade)) != nil }
    let groups = try await repository.grouped(by: \.shade)
    #expect(groups == Dictionary(grouping: repository.snapshot.loadAll(), by: \.shade).mapValues(\.count) && groups.count == 3)
  }

  @Test func moreColumnsThanHaveADirectionAreScanned() async throws {
    let query = (0..<32).reduce(Query<Reading>()) { query, _ in query.sorted(by: \.kind) }
    let repository = try await repository()
    #expect(try await repository.readyRun(query.limit(50)).automaticIndex != nil)
    #expect(try await repository.readyRun(query.sorted(by: \.value, .reverse).limit(50)).automaticIndex == nil)
    // A declared index with a column beyond those gives its order only where it ascends.
    let columns = (0..<32).map { _ in IndexColumn<Reading>.ascending(\.kind) } + [.descending(\.value)]
    let declaration = RepositoryIndex(kind: .ordered(isUnique: false), columns: columns)
    let declared = try await self.repository(100, indexes: [declaration])
    let ordered = query.sorted(by: \.value, .reverse)
    let expected = declared.snapshot.loadAll().sorted { ($0.kind.rawValue, -$0.value, $0.id) < ($1.kind.rawValue, -$1.value, $1.id) }
    #expect(try await declared.fetch(ordered.limit(50)).map(\.id) == expected.prefix(50).map(\.id))
  }

  @Test func aLargeWriteRemovesThemAndDecodesNothing() async throws {
    let repository = try await repository()
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    var random = SeededGenerator(6)
    let readings = (Self.count...2 * Self.count).map { Reading.random($0, using: &random) }
    try await repository.save(contentsOf: readings, durability: .buffered)
    #expect(automatic(repository) == [])
    #expect(try repository.snapshot.records.tally.untouched == readings.count)
    try await repository.delete(Self.count)
    #expect(try await repository.fetch(byValue.limit(1)).first?.value == repository.snapshot.loadAll().map(\.value).min())
    try await until { name(repository, byValue) != nil }
    try await repository.replaceAll(with: readings)
    #expect(automatic(repository) == [])
  }

  /// A removal reaches the index that a query has just called for, one that is being built, and one that is built.
  @Test func aRemovalIsTheLastWord() async throws {
    let repository = try await repository()
    for _ in 0..<20 {
      _ = try await repository.page(byValue, limit: 50)
      for _ in 0..<Int.random(in: 0..<200) { await Task.yield() }
      await repository.removeAutomaticIndexes()
      for _ in 0..<50 {
        await Task.yield()
        await repository.core.executor.run {}
      }
      #expect(automatic(repository) == [])
    }
    _ = try await repository.page(byValue, limit: 50)
    try await repository.close()
    for _ in 0..<50 { await Task.yield() }
    #expect(name(repository, byValue) == nil)
  }

  @Test func liveResultsLeaveOne() async throws {
    let repository = try await repository()
    var results = repository.results(of: byValue.limit(50)).makeAsyncIterator()
    let first = try await results.next()
    #expect(first?.count == 50)
    try await until { name(repository, byValue) != nil }
  }

  /// A repository opened later declares what the first one has, without what was added since.
  @Test func itIsNoPartOfTheSchema() async throws {
    let store = try await Store.open(InMemoryBackend())
    let schema = RepositorySchema<Reading>("readings", indexes: [.unique(\.id)])
    let repository = try await store.repository(schema)
    var random = SeededGenerator(3)
    try await repository.save(contentsOf: (0..<Self.count).map { Reading.random($0, using: &random) })
    _ = try await repository.page(byValue, limit: 50)
    try await until { name(repository, byValue) != nil }
    let second = try await store.repository(schema)
    #expect(name(second, byValue) == "automatic ordered(value)")
  }
}
