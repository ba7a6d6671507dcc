import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Pages by cursor: complete and without repetition, whatever comes and goes meanwhile.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct PageTests {
  @Test func whatStaysIsSeenOnceWhateverComesAndGoes() async throws {
    for seed in Seeds.list(Torture.count(8, full: 100), for: "pages with writes") {
      var random = SeededGenerator(seed)
      let indexes: [RepositoryIndex<Thing>] = random.chance(50) ? [.ordered(\.rating)] : []
      let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: indexes))
      let all = (0..<100).map { Thing.random($0, using: &random) }
      try await things.save(contentsOf: all)
      let query = Query<Thing>().sorted(by: \.rating, random.chance(50) ? .reverse : .forward)
      // Every third record is touched by nobody; the others are deleted, and new ones come.
      let staying = Set(all.filter { $0.id % 3 == 0 }.map(\.id))
      var seen: [Int] = []
      var cursor: PageCursor?
      var next = 1_000
      repeat {
        let page = try await things.page(query, after: cursor, limit: 7)
        seen += page.items.map(\.id).filter(staying.contains)
        cursor = page.next
        for _ in 0..<5 {
          try await things.delete(all[random.int(0..<100)].id.notDivisibleByThree)
          try await things.save(Thing.random(next, using: &random).moved(to: next * 3 + 1))
          next += 1
        }
      } while cursor != nil && next < 3_000
      #expect(seen.count == staying.count && Set(seen) == staying, "replay with LARDER_SEED=\(seed)")
      if seen.count != staying.count { return }
    }
  }

  @Test func aCursorOfAnotherOrderIsRefused() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: [.fullText(\.notes)]))
    var random = SeededGenerator(1)
    try await things.save(contentsOf: (0..<20).map { Thing.random($0, using: &random) })
    let cursor = try await things.page(Query().sorted(by: \.rating), limit: 3).next
    #expect(cursor != nil)
    for query in [Query<Thing>(), Query().sorted(by: \.rating, .reverse), Query().sorted(by: \.rating).sorted(by: \.day)] {
      let refused = await code { _ = try await things.page(query, after: cursor, limit: 3) }
      #expect(refused == .unsupported)
    }
    for query in [Query<Thing>().limit(3), Query().offset(1), Query().matching("dawn")] {
      let refused = await code { _ = try await things.page(query, limit: 3) }
      #expect(refused == .unsupported)
    }
    let refused = await code { _ = try await things.page(Query(), limit: 0) }
    #expect(refused == .unsupported)
  }
}

extension Int {
  fileprivate var notDivisibleByThree: Int { self % 3 == 0 ? self + 1 : self }
}

extension Thing {
  fileprivate func moved(to id: Int) -> Thing {
    Thing(
      id: id, country: country, kind: kind, rating: rating, height: height, score: score, day: day, isOpen: isOpen, tags: tags,
      latitude: latitude, longitude: longitude, notes: notes)
  }
}
