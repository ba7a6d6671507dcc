import Foundation
import Testing

@testable import Larder

/// The table of predicates in the guide to queries: each of its conditions compiles, is answered, and uses an index where it says so.
@Suite(.timeLimit(.minutes(15))) struct PredicateTableTests {
  private struct Row: Codable, Identifiable {
    let id: Int
    var name = "abc"
    var rating = 4
    var isOpen = false
    var note: String?
    var tags = ["a"]
    var counts = ["a": 1]
    var day = Date(timeIntervalSince1970: 0)
  }

  private static let indexes: [RepositoryIndex<Row>] = [
    .ordered(\.name), .ordered(\.rating), .ordered(\.isOpen), .ordered(\.note), .ordered(\.day),
  ]

  private func answers(_ predicates: [Predicate<Row>], withIndex: Bool) async throws {
    let rows = try await LocalRepository(inMemory: RepositorySchema("rows", indexes: Self.indexes))
    try await rows.save(contentsOf: [
      Row(id: 1), Row(id: 2, name: "x", rating: 1, isOpen: true, note: "a", tags: [], counts: [:], day: .now),
    ])
    for (number, predicate) in predicates.enumerated() {
      let found = try await rows.fetch(where: predicate)
      #expect(found.map(\.id) == [1], "condition \(number)")
      let plan = rows.explain(Query().where(predicate))
      #expect((plan.access != .scan) == withIndex, "condition \(number): \(plan)")
    }
  }

  @Test func theseUseAnIndex() async throws {
    let (n, zero) = (4, Date(timeIntervalSince1970: 0))
    try await answers(
      [
        #Predicate { $0.rating == n }, #Predicate { !$0.isOpen }, #Predicate { $0.isOpen == false }, #Predicate { $0.note == nil },
        #Predicate { $0.rating >= 4 }, #Predicate { $0.name < "b" }, #Predicate { (3...5).contains($0.rating) },
        #Predicate { $0.day <= zero }, #Predicate { ["abc", "b"].contains($0.name) }, #Predicate { $0.name == "abc" || $0.name == "b" },
        #Predicate { $0.rating >= 2 && $0.name != "b" }, #Predicate { $0.name.starts(with: "ab") },
      ], withIndex: true)
  }

  @Test func theseAreCheckedRecordByRecord() async throws {
    let n = 4
    try await answers(
      [
        #Predicate { $0.name != "x" }, #Predicate { $0.name == "abc" || $0.rating == 9 }, #Predicate { !($0.rating == 1) },
        #Predicate { $0.name.contains("b") }, #Predicate { $0.name.contains(/a.c/) }, #Predicate { !$0.name.isEmpty && $0.name.count > 2 },
        #Predicate { $0.tags.contains("a") }, #Predicate { $0.tags.contains { $0.starts(with: "a") } },
        #Predicate { $0.tags.filter { $0 == "a" }.count == 1 }, #Predicate { $0.tags.min() == "a" },
        #Predicate { !($0.note?.contains("a") ?? false) }, #Predicate { if let note = $0.note { note == "x" } else { true } },
        #Predicate { $0.rating + 1 > n }, #Predicate { $0.rating % 2 == 0 }, #Predicate { $0.rating / 2 == 2 },
        #Predicate { $0.isOpen ? false : true }, #Predicate { $0.counts["a"] == 1 },
      ], withIndex: false)
  }
}
