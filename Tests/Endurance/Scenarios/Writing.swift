import Foundation
import Larder
import LarderSQLite

/// Writes, on each of the backends.
enum Writing {
  /// Writes that are not synced: the same work, without waiting for the disk.
  private static let buffered = StoreOptions(durability: .buffered, limits: .init(tombstones: 50))

  private static let backends: [(name: String, open: @Sendable (Place) async throws -> LocalRepository<Jar>)] = [
    ("in memory", { _ in try await LocalRepository(inMemory: Jar.schema, options: buffered) }),
    ("JSON", { try await LocalRepository(jsonFile: $0.file("jars.json"), schema: Jar.schema, options: buffered) }),
    ("SQLite", { try await LocalRepository(sqliteFile: $0.file("jars.sqlite"), schema: Jar.schema, options: buffered) }),
  ]

  /// Makes a scenario for each backend, over a repository that holds all jars.
  private static func each(
    _ name: String, weight: Int = 1, _ use: @escaping @Sendable (LocalRepository<Jar>, Int) async throws -> Void
  ) -> [Scenario] {
    backends.map { backend in
      Scenario("\(name), \(backend.name)", weight: weight) { place in
        let jars = try await backend.open(place)
        try await jars.save(contentsOf: Jar.all)
        return Subject {
          try await use(jars, $0)
        } settle: {
          try await jars.checkpoint()
        } end: {
          try await jars.close()
        }
      }
    }
  }

  static let scenarios: [Scenario] =
    [
      each("save") { jars, number in try await jars.save(Jar(number % 7, use: number)) },
      each("update") { jars, number in
        try expect(try await jars.update(number % 7) { $0.shelf = number % 10 }.shelf == number % 10, "the shelf")
      },
      each("compare and set") { jars, number in
        guard let revision = jars.revision(of: 3) else { throw WrongAnswer(description: "expected a revision") }
        try await jars.save(Jar(3, use: number), ifRevision: revision)
        do {
          try await jars.save(Jar(3), ifRevision: revision)
          throw WrongAnswer(description: "expected a refusal")
        } catch RepositoryError.Code.revisionMismatch {}
      },
      each("delete and insert one") { jars, number in
        try expect(try await jars.delete(5), "a jar to delete")
        try await jars.insert(Jar(5, use: number))
      },
      each("a new record each, removed later") { jars, number in
        try await jars.insert(Jar(1_000 + number))
        if number >= 50 { try expect(try await jars.delete(950 + number), "a jar to delete") }
      },
      each("transaction") { jars, number in
        try await jars.transaction { transaction in
          let jar = try transaction.find(by: 1, in: jars)
          try expect(jar != nil, "jar 1")
          try transaction.save(Jar(1, use: number), in: jars)
          try transaction.update(2, in: jars) { $0.shelf = number % 10 }
        }
        do {
          try await jars.transaction { transaction in
            try transaction.delete(1, in: jars)
            throw WrongAnswer(description: "given up")
          }
        } catch is WrongAnswer {}
      },
      each("replace all", weight: 20) { jars, number in try await jars.replaceAll(with: Jar.all.map { Jar($0.id, use: number) }) },
      each("cancelled save") { jars, number in
        let task = Task { try await jars.save(Jar(number % 7, use: number)) }
        task.cancel()
        _ = await task.result
      },
    ].flatMap(\.self) + [
      Scenario("save, JSON, durable") { place in
        let jars = try await LocalRepository<Jar>(jsonFile: place.file("jars.json"))
        return Subject {
          try await jars.save(Jar($0 % 7, use: $0))
        } settle: {
          try await jars.checkpoint()
        } end: {
          try await jars.close()
        }
      },
      Scenario("save, SQLite, durable") { place in
        let jars = try await LocalRepository<Jar>(sqliteFile: place.file("jars.sqlite"))
        return Subject {
          try await jars.save(Jar($0 % 7, use: $0))
        } settle: {
          try await jars.checkpoint()
        } end: {
          try await jars.close()
        }
      },
      // Large records, so that the journal is folded and the log is checkpointed every few dozen uses.
      Scenario("fold, JSON") { place in
        let notes = try await LocalRepository<Note>(jsonFile: place.file("notes.json"), options: buffered)
        return Subject {
          try await notes.save(Note($0))
        } settle: {
          try await notes.checkpoint()
        } end: {
          try await notes.close()
        }
      },
      Scenario("checkpoint, SQLite") { place in
        let notes = try await LocalRepository<Note>(sqliteFile: place.file("notes.sqlite"), options: buffered)
        return Subject {
          try await notes.save(Note($0))
        } settle: {
          try await notes.checkpoint()
        } end: {
          try await notes.close()
        }
      },
      Scenario("checkpoint on request, JSON", weight: 5) { place in
        let jars = try await LocalRepository<Jar>(jsonFile: place.file("jars.json"), options: buffered)
        return Subject { number in
          try await jars.save(Jar(number % 7, use: number))
          try await jars.checkpoint()
        } settle: {
          try await jars.checkpoint()
        } end: {
          try await jars.close()
        }
      },
    ]
}

/// A record of 20 KB.
struct Note: Codable, Identifiable, Sendable {
  let id: Int
  let text: String

  init(_ number: Int) {
    id = number % 7
    text = String(repeating: "note \(number % 100) ", count: 2_000)
  }
}
