import Foundation
import LarderTesting
import Testing

@testable import Larder

/// `where(\.kind, .equal, .pier)`: what `#Predicate` cannot say, by an index where there is one.
@Suite(.timeLimit(.minutes(15))) struct ComparisonTests {
  /// A type of its own order, and no index values.
  private struct Grade: Codable, Hashable, Comparable, Sendable {
    let name: String
    static func < (left: Grade, right: Grade) -> Bool { left.name.count < right.name.count }
  }

  /// Different values have one index value: what an index finds is checked.
  private struct Label: Codable, Hashable, Comparable, Sendable, IndexableValue {
    let text: String
    var indexValue: IndexValue { IndexValue(text.lowercased()) }
    static func < (left: Label, right: Label) -> Bool { left.text < right.text }
  }

  private struct Record: Codable, Identifiable, Sendable, Equatable {
    enum Kind: String, Codable, Sendable, CaseIterable, IndexableValue { case pier, beach, summit }
    enum Size: Codable, Sendable, Hashable { case small, large(Int) }

    let id: Int
    var kind: Kind
    var size: Size
    var grade: Grade
    var label: Label
    var rating: Int
    var height: Double
    var day: Date
    var score: Int?
    var moment: Date?
    var maybe: Kind?

    static func random(_ id: Int, using random: inout SeededGenerator) -> Record {
      let heights = [-1.5, -0.0, 0, 2.25, 7]
      return Record(
        id: id, kind: Kind.allCases[random.int(0..<3)], size: random.chance(50) ? .small : .large(random.int(0..<3)),
        grade: Grade(name: String(repeating: "i", count: random.int(0..<4))), label: Label(text: ["a", "A", "b"][random.int(0..<3)]),
        rating: random.int(0..<6), height: heights[random.int(0..<heights.count)],
        day: Date(timeIntervalSince1970: Double(random.int(0..<4))),
        score: random.chance(40) ? nil : random.int(-2..<3),
        moment: random.chance(40) ? nil : Date(timeIntervalSince1970: Double(random.int(0..<4))),
        maybe: random.chance(40) ? nil : Kind.allCases[random.int(0..<3)])
    }
  }

  private static let indexes: [RepositoryIndex<Record>] = [
    .ordered(\.kind, \.rating), .ordered(\.label), .ordered(\.rating), .ordered(\.height), .ordered(\.day), .ordered(\.score),
    .ordered(\.moment),
    .ordered(.descending(\.maybe)),
  ]

  /// Conditions with what they mean in plain Swift.
  private static func conditions(using random: inout SeededGenerator) -> [(Query<Record>, @Sendable (Record) -> Bool)] {
    let other = Record.random(0, using: &random)
    let (score, moment) = (other.score ?? 0, other.moment ?? Date(timeIntervalSince1970: 1))
    let empty = Query<Record>()
    return [
      (empty.where(\.kind, .equal, other.kind), { $0.kind == other.kind }), (empty.where(\.kind, .notEqual, .pier), { $0.kind != .pier }),
      (empty.where(\.kind, in: [.pier, .summit]), { $0.kind != .beach }), (empty.where(\.kind, in: []), { _ in false }),
      (empty.where(\.size, .equal, .large(1)), { $0.size == .large(1) }), (empty.where(\.size, in: [.small]), { $0.size == .small }),
      (empty.where(\.grade, .less, other.grade), { $0.grade < other.grade }),
      (empty.where(\.grade, .greaterOrEqual, other.grade), { $0.grade >= other.grade }),
      (empty.where(\.label, .equal, other.label), { $0.label == other.label }),
      (empty.where(\.label, .lessOrEqual, other.label), { $0.label <= other.label }),
      (empty.where(\.label, in: [other.label, Label(text: "b")]), { $0.label == other.label || $0.label.text == "b" }),
      (empty.where(\.rating, .less, other.rating), { $0.rating < other.rating }),
      (empty.where(\.rating, .lessOrEqual, other.rating), { $0.rating <= other.rating }),
      (empty.where(\.rating, .greater, other.rating), { $0.rating > other.rating }),
      (empty.where(\.rating, .greaterOrEqual, other.rating), { $0.rating >= other.rating }),
      (empty.where(\.height, .equal, 0), { $0.height == 0 }), (empty.where(\.height, .less, other.height), { $0.height < other.height }),
      (empty.where(\.height, .greaterOrEqual, .nan), { _ in false }), (empty.where(\.height, .notEqual, .nan), { _ in true }),
      (empty.where(\.day, .greater, other.day), { $0.day > other.day }),
      (empty.where(\.day, .lessOrEqual, other.day), { $0.day <= other.day }),
      (empty.where(\.score, .equal, nil), { $0.score == nil }), (empty.where(\.score, .equal, score), { $0.score == score }),
      (empty.where(\.score, .notEqual, score), { $0.score != score }), (empty.where(\.score, .notEqual, nil), { $0.score != nil }),
      (empty.where(\.score, .less, score), { $0.score.map { $0 < score } ?? false }),
      (empty.where(\.score, .greaterOrEqual, score), { $0.score.map { $0 >= score } ?? false }),
      (empty.where(\.score, in: [nil, 1]), { $0.score == nil || $0.score == 1 }),
      (empty.where(\.moment, .lessOrEqual, moment), { $0.moment.map { $0 <= moment } ?? false }),
      (
        empty.where(\.moment, .lessOrEqual, Date(timeIntervalSinceReferenceDate: .nan)),
        { $0.moment.map { $0 <= Date(timeIntervalSinceReferenceDate: .nan) } ?? false }
      ),
      (empty.where(\.maybe, .equal, .pier), { $0.maybe == .pier }), (empty.where(\.maybe, .equal, nil), { $0.maybe == nil }),
    ]
  }

  @Test func aComparisonGivesWhatPlainSwiftGivesWhateverIsIndexed() async throws {
    for seed in Seeds.list(20, for: "comparisons") {
      var random = SeededGenerator(seed)
      let declared = Self.indexes.filter { _ in random.chance(60) }
      let records = try await LocalRepository(inMemory: RepositorySchema<Record>("records", indexes: declared))
      let all = (0..<60).map { Record.random($0, using: &random) }
      try await records.save(contentsOf: all)
      for (number, (query, isMet)) in Self.conditions(using: &random).enumerated() {
        let found = try await records.fetch(query)
        let count = try await records.count(query.where(\.rating, .greater, 2))
        let isRight = found == all.filter(isMet) && count == all.count { isMet($0) && $0.rating > 2 }
        #expect(isRight, "condition \(number) | \(records.explain(query)) | replay with LARDER_SEED=\(seed)")
      }
    }
  }

  @Test func anIndexAnswersAComparisonAsItDoesAPredicate() async throws {
    let records = try await LocalRepository(inMemory: RepositorySchema<Record>("records", indexes: Self.indexes))
    var random = SeededGenerator(5)
    try await records.save(contentsOf: (0..<200).map { Record.random($0, using: &random) })
    let plans = [
      (Query<Record>().where(\.kind, .equal, .pier), "ordered(kind, rating)", ["kind ="], []),
      (Query<Record>().where(\.kind, .equal, .pier).where(\.rating, .greater, 3), "ordered(kind, rating)", ["kind =", "rating >"], []),
      (Query<Record>().where(\.kind, in: [.pier, .beach]), "ordered(kind, rating)", ["kind in 2"], []),
      (Query<Record>().where(\.score, .less, 0), "ordered(score)", ["score > <"], []),
      (Query<Record>().where(\.label, .equal, Label(text: "A")), "ordered(label)", ["label ="], ["label"]),
    ]
    for (query, index, conditions, residual) in plans {
      let plan = records.explain(query)
      #expect(plan.index == index && plan.conditions == conditions && plan.residual == residual, "\(plan)")
    }
    #expect(records.explain(Query().where(\.grade, .equal, Grade(name: "i"))).residual == ["predicate"])
    #expect(records.explain(Query().where(\.kind, in: [])).access == .nothing)
  }

  @Test func liveResultsFollowAComparison() async throws {
    let records = try await LocalRepository(inMemory: RepositorySchema<Record>("records", indexes: Self.indexes))
    var random = SeededGenerator(9)
    var record = Record.random(1, using: &random)
    record.kind = .beach
    try await records.save(record)
    var results = records.results(of: Query().where(\.kind, .equal, .pier)).makeAsyncIterator()
    let before = try await results.next()
    #expect(before?.isEmpty == true)
    record.kind = .pier
    try await records.save(record)
    let after = try await results.next()
    #expect(after == [record])
    try await records.close()
  }

  /// `CGFloat` has no index values, and its NaN is neither less nor greater than a number.
  @Test func aNotANumberOfAnyTypeSortsLast() async throws {
    struct Slope: Codable, Identifiable, Sendable {
      let id: Int
      var rise: Int
      var run: Int
      var slope: CGFloat { CGFloat(rise) / CGFloat(run) }
      var known: CGFloat? { rise < 0 ? nil : slope }
    }
    var slopes = [(3, 1), (0, 0), (1, 1), (0, 0), (2, 1), (-1, 1)].enumerated().map { Slope(id: $0, rise: $1.0, run: $1.1) }
    var random = SeededGenerator(4)
    for _ in 0..<20 {
      slopes.shuffle(using: &random)
      let records = try await LocalRepository<Slope>(inMemory: .init("slopes"))
      for slope in slopes { try await records.save(slope) }
      #expect(try await records.fetch(Query().sorted(by: \.slope)).map(\.id) == [5, 2, 4, 0, 1, 3])
      #expect(try await records.fetch(Query().sorted(by: \.slope, .reverse)).map(\.id) == [1, 3, 0, 4, 2, 5])
      #expect(try await records.fetch(Query().sorted(by: \.known)).map(\.id) == [5, 2, 4, 0, 1, 3])
      #expect(try await records.max(of: \.slope)?.isNaN == true)
      #expect(try await records.min(of: \.slope) == -1)
    }
  }

  /// Swift's `<` orders "e\u{301}" behind "éa", and its equal "é" before it.
  @Test func anIndexAndAScanOrderTextsAlike() async throws {
    struct Note: Codable, Identifiable, Sendable {
      let id: Int
      var text: String
      var other: String
    }
    let texts = [
      "e", "e\u{301}", "\u{E9}", "\u{E9}a", "e\u{301}a", "f", "K", "\u{212A}", "Ke", "\u{212A}e", "\u{212B}", "A\u{30A}", "Z", "",
    ]
    var notes: [Note] = []
    for (row, text) in texts.enumerated() {
      for (column, other) in texts.enumerated() { notes.append(Note(id: row * texts.count + column, text: text, other: other)) }
    }
    func bytes(_ text: String) -> [UInt8] { Array(text.precomposedStringWithCanonicalMapping.utf8) }
    func isBefore(_ left: String, _ right: String) -> Bool { bytes(left).lexicographicallyPrecedes(bytes(right)) }
    let stores = [
      try await LocalRepository<Note>(inMemory: .init("notes", indexes: [.ordered(\.text)])),
      try await LocalRepository<Note>(inMemory: .init("notes")),
    ]
    for store in stores {
      try await store.save(contentsOf: notes)
      func expect(_ query: Query<Note>, _ isMet: (Note) -> Bool) async throws {
        #expect(try await Set(store.fetch(query).map(\.id)) == Set(notes.filter(isMet).map(\.id)))
      }
      for text in texts {
        try await expect(Query().where(\.text, .less, text)) { isBefore($0.text, text) }
        try await expect(Query().where(\.text, .lessOrEqual, text)) { !isBefore(text, $0.text) }
        try await expect(Query().where(\.text, .greater, text)) { isBefore(text, $0.text) }
        try await expect(Query().where(\.text, .greaterOrEqual, text)) { !isBefore($0.text, text) }
        try await expect(Query().where(#Predicate { $0.text < text })) { isBefore($0.text, text) }
        try await expect(Query().where(#Predicate { text <= $0.text })) { !isBefore($0.text, text) }
        let (from, upTo, through) = (text..., ..<text, ...text)
        try await expect(Query().where(#Predicate { from.contains($0.text) })) { !isBefore($0.text, text) }
        try await expect(Query().where(#Predicate { upTo.contains($0.text) })) { isBefore($0.text, text) }
        try await expect(Query().where(#Predicate { through.contains($0.text) })) { !isBefore(text, $0.text) }
        for other in texts where text <= other {
          let (open, closed) = (text..<other, text...other)
          try await expect(Query().where(#Predicate { open.contains($0.text) })) { !isBefore($0.text, text) && isBefore($0.text, other) }
          try await expect(Query().where(#Predicate { closed.contains($0.text) })) { !isBefore($0.text, text) && !isBefore(other, $0.text) }
        }
      }
      try await expect(Query().where(#Predicate { $0.text < $0.other })) { isBefore($0.text, $0.other) }
      try await expect(Query().where(#Predicate { $0.text >= $0.other })) { !isBefore($0.text, $0.other) }
    }
  }
}
