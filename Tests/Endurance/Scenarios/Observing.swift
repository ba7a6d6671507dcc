import Foundation
import Larder
import LarderTesting

/// Readers that follow a store: those that keep up, those that are dropped, and those that are cancelled while they wait.
enum Observing {
  static let scenarios = [
    Scenario("one change sequence") { _ in
      let jars = try await Jar.inMemory()
      let changes = Follower(jars.changes().makeAsyncIterator())
      return Subject { number in
        try await jars.save(Jar(number % 7, use: number))
        try expect(try await changes.next()?.changes.first?.new?.id == number % 7, "the change")
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("changes that nobody takes") { _ in
      let jars = try await Jar.inMemory()
      let changes = Follower(jars.changes().makeAsyncIterator())
      return Subject { number in
        try await jars.save(Jar(number % 7, use: number))
      } settle: {
        try await jars.checkpoint()
      } end: {
        try expect(try await changes.next()?.changes.count == 7, "one merged change for each record")
        try await jars.close()
      }
    },
    Scenario("change sequences, dropped", uses: 500_000) { _ in
      let jars = try await Jar.inMemory()
      return Subject { number in
        let changes = jars.changes()
        if number % 2 == 0 { _ = changes.makeAsyncIterator() }
        if number % 20 == 0 { try await jars.save(Jar(number % 7, use: number)) }
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("change sequences, cancelled", uses: 200_000) { _ in
      let jars = try await Jar.inMemory()
      let changes = jars.changes()
      return Subject { _ in
        try await cancelled {
          var iterator = changes.makeAsyncIterator()
          while try await iterator.next() != nil {}
        }
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("changes since a revision", weight: 5) { _ in
      let jars = try await LocalRepository<Jar>(inMemory: Jar.schema, options: .init(limits: .init(tombstones: 50)))
      try await jars.save(contentsOf: Jar.all)
      return Subject { number in
        let revision = jars.snapshot.revision
        try await jars.delete(5)
        try await jars.insert(Jar(5, use: number))
        var changes = jars.changes(since: revision).makeAsyncIterator()
        try expect(try await changes.next() != nil, "what came since")
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("one live query") { _ in
      let jars = try await Jar.inMemory()
      let query = Query<Jar>().where(#Predicate { $0.shelf >= 0 }).sorted(by: \.label).limit(5)
      let results = Follower(jars.results(of: query).makeAsyncIterator())
      return Subject { number in
        // Differs from the one before: what is saved sorts first.
        var jar = Jar(number % 3, use: number)
        jar.label = "a\(number)"
        try await jars.save(jar)
        try expect(try await results.next()?.count == 5, "5 jars")
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("live queries, dropped", uses: 200_000) { _ in
      let jars = try await Jar.inMemory()
      let query = Query<Jar>().where(#Predicate { $0.shelf == 3 }).limit(5)
      return Subject { number in
        let results = jars.results(of: query)
        if number % 3 == 0 { _ = results.makeAsyncIterator() }
        if number % 3 == 1 {
          var iterator = results.makeAsyncIterator()
          try expect(try await iterator.next()?.count == 5, "5 jars")
        }
        if number % 20 == 0 { try await jars.save(Jar(number % 7, use: number)) }
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("live queries, cancelled") { _ in
      let jars = try await Jar.inMemory()
      let results = jars.results(of: Query().limit(2))
      return Subject { _ in
        try await cancelled {
          var iterator = results.makeAsyncIterator()
          while try await iterator.next() != nil {}
        }
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("live queries of views") { _ in
      let jars = try await Jar.inMemory()
      return Subject { number in
        let live = await LiveQuery(jars, Query().limit(number % 5 + 1))
        if number % 2 == 0 {
          while await live.isLoading { await Task.yield() }
          let count = await live.items.count
          try expect(count == number % 5 + 1, "\(number % 5 + 1) jars, found \(count)")
        }
      } settle: {
        try await jars.checkpoint()
      } end: {
        try await jars.close()
      }
    },
    Scenario("scripted sequence", uses: 500_000) { _ in
      let sequence = ScriptedSequence<Int>()
      let iterator = Follower(sequence.makeAsyncIterator())
      return Subject { number in
        sequence.send(number)
        try expect(try await iterator.next() == number, "the element")
      }
    },
  ]
}

/// The one reader of a sequence.
actor Follower<Iterator: AsyncIteratorProtocol> {
  private var iterator: Iterator

  init(_ iterator: sending Iterator) { self.iterator = iterator }

  func next() async throws -> Iterator.Element? where Iterator.Element: Sendable {
    var own = iterator
    defer { iterator = own }
    return try await own.next(isolation: self)
  }
}

/// Runs work in a task that is cancelled soon, and waits for its end.
func cancelled(_ work: @escaping @Sendable () async throws -> Void) async throws {
  let task = Task { try await work() }
  // Sometimes before it waits, and sometimes then.
  for _ in 0..<Int.random(in: 0...3) { await Task.yield() }
  task.cancel()
  _ = await task.result
}
