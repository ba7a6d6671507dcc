import Foundation
import Larder

/// Reads, which keep nothing.
enum Reading {
  static let scenarios = [
    Scenario("query") { _ in
      let jars = try await Jar.inMemory()
      let query = Query<Jar>().where(#Predicate { $0.shelf == 3 }).sorted(by: \.label).limit(5)
      return Subject { _ in
        try expect(try await jars.fetch(query).count == 5, "5 jars")
      } end: {
        try await jars.close()
      }
    },
    Scenario("query made anew") { _ in
      let jars = try await Jar.inMemory()
      return Subject { number in
        let shelf = number % 10
        let predicate = #Predicate<Jar> { $0.shelf == shelf && $0.latitude >= 0 }
        try expect(try await jars.count(where: predicate) == 20, "20 jars")
        try expect(jars.explain(Query().where(predicate)).index != nil, "an index")
      } end: {
        try await jars.close()
      }
    },
    Scenario("near and matching") { _ in
      let jars = try await Jar.inMemory()
      let near = Query<Jar>().near(latitude: 7, longitude: 7, within: .kilometers(10)).limit(3)
      return Subject { number in
        try expect(try await jars.fetch(near).first?.id == 7, "jar 7")
        let found = try await jars.matches(Query().matching("jar \(number % Jar.count)").limit(3))
        try expect(!found.isEmpty, "a match")
      } end: {
        try await jars.close()
      }
    },
    Scenario("snapshot", uses: 500_000) { _ in
      let jars = try await Jar.inMemory()
      return Subject { number in
        let snapshot = jars.snapshot
        try expect(try snapshot.find(by: number % Jar.count)?.id == number % Jar.count, "the jar")
        try expect(snapshot.count == Jar.count, "all jars")
      } end: {
        try await jars.close()
      }
    },
    Scenario("store snapshot", uses: 500_000) { _ in
      let store = try await Store.open(InMemoryBackend())
      let jars = try await store.repository(Jar.schema)
      try await jars.save(contentsOf: Jar.all)
      return Subject { number in
        let snapshot = store.snapshot
        try expect(try snapshot.find(by: number % Jar.count, in: jars) != nil, "the jar")
        if number % 100 == 0 { try expect(try snapshot.snapshot(of: jars).count == Jar.count, "all jars") }
      } end: {
        try await store.close()
      }
    },
    Scenario("page cursor", weight: 10) { _ in
      let jars = try await Jar.inMemory()
      let query = Query<Jar>().sorted(by: \.label)
      return Subject { _ in
        let first = try await jars.page(query, limit: 20)
        guard let next = first.next else { throw WrongAnswer(description: "expected a second page") }
        let read = try JSONDecoder().decode(PageCursor.self, from: try JSONEncoder().encode(next))
        try expect(try await jars.page(query, after: read, limit: 20).items.count == 20, "20 jars")
      } end: {
        try await jars.close()
      }
    },
    // A record as deep as the limit allows, which is read and written by recursion.
    Scenario("deep record") { _ in
      let nests = try await LocalRepository<Nest>(inMemory: .init("nests"))
      return Subject { number in
        try await nests.save(Nest(id: number % 10, depth: 60))
        try expect(try nests.snapshot.find(by: number % 10)?.depth == 60, "a nest of 60")
      } end: {
        try await nests.close()
      }
    },
  ]
}

/// A record of arrays in arrays.
struct Nest: Codable, Identifiable, Sendable {
  indirect enum Level: Codable, Sendable {
    case end
    case inside(Level)

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      self = container.isAtEnd ? .end : .inside(try container.decode(Level.self))
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      if case .inside(let level) = self { try container.encode(level) }
    }
  }

  let id: Int
  let level: Level

  init(id: Int, depth: Int) {
    self.id = id
    level = (1..<depth).reduce(Level.end) { level, _ in .inside(level) }
  }

  var depth: Int {
    var (depth, level) = (1, level)
    while case .inside(let next) = level { (depth, level) = (depth + 1, next) }
    return depth
  }
}
