import Foundation
import Larder

/// A save among 100,000 records, with each of some indexes and without.
private func saved(
  _ backend: Backend, _ durability: Durability, _ indexed: [(name: String, index: RepositoryIndex<Place>)]
) async throws -> String {
  try await withDirectory { directory in
    let declared: [[RepositoryIndex<Place>]] = [[]] + indexed.map { [$0.index] }
    var repositories: [LocalRepository<Place>] = []
    for (number, indexes) in declared.enumerated() {
      let own = directory.appendingPathComponent("\(number)")
      try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
      let options = StoreOptions(durability: durability, checkpoint: .manual, indexing: .eager)
      let repository = try await backend.open(in: own, .init("places", indexes: indexes), options)
      try await repository.save(contentsOf: PlaceSample.all.enumerated().map { Place($0.offset, $0.element) }, durability: .buffered)
      try await repository.checkpoint()
      repositories.append(repository)
    }
    var results: [String] = []
    let kinds = [("a new slug", true), ("the same slug", false)]
    for (name, changesSlug) in kinds {
      let times = try await medians(
        rounds: durability == .durable && backend != .memory ? 1_500 : 5_000,
        repositories.map { repository in
          { round in
            var place = Place(round, PlaceSample.all[round * 13 % PlaceSample.count])
            if changesSlug { place.slug = "new-\(round)" }
            place.rating += 1
            try await repository.save(place)
          }
        })
      let ratios = zip(indexed, times.dropFirst()).map { "\(text($1 / times[0])) times with \($0.name) (\(text($1)) µs)" }
      results.append("\(name): \(text(times[0])) µs plain, \(ratios.joined(separator: ", "))")
    }
    for repository in repositories { try await repository.close() }
    return results.joined(separator: "; ")
  }
}

private let slugs: [(name: String, index: RepositoryIndex<Place>)] = [(".ordered", .ordered(\.slug)), (".unique", .unique(\.slug))]

let uniquenessScenarios = [
  Scenario(name: "durable save with .unique : without", backends: Backend.onDisk) { try await saved($0, .durable, slugs) },
  Scenario(name: "buffered save with .unique : without", backends: Backend.allCases) { try await saved($0, .buffered, slugs) },
  Scenario(name: "buffered save with .geo or .fullText : without", backends: [.memory]) { backend in
    try await saved(backend, .buffered, [(".geo", .geo(\.latitude, \.longitude)), (".fullText", .fullText(\.name, \.notes))])
  },
]

let indexScenarios = [
  Scenario(name: "making an index of 100,000", backends: [.memory]) { backend in
    try await withDirectory { directory in
      let kinds: [(String, RepositoryIndex<Place>, Query<Place>)] = [
        ("ordered(country, rating)", .ordered(\.country, \.rating), Query().where(#Predicate { $0.country == "" })),
        ("unique(slug)", .unique(\.slug), Query().where(#Predicate { $0.slug == "" })),
        ("geo", .geo(\.latitude, \.longitude), Query().near(latitude: 0, longitude: 0).limit(1)),
        ("fullText(name, notes)", .fullText(\.name, \.notes), Query().matching("x")),
      ]
      var results: [String] = []
      for (name, index, query) in kinds {
        var times: [Double] = []
        for _ in 0..<5 {
          let repository = try await backend.open(in: directory, .init("places", indexes: [index]))
          try await repository.save(contentsOf: PlaceSample.all.enumerated().map { Place($0.offset, $0.element) })
          _ = try await repository.loadAll()
          // A unique index is there from the beginning: then it is the first save that pays.
          times.append(try await clock.measure { _ = try await repository.fetch(query) }.microseconds / 1_000)
          try await repository.close()
        }
        if !name.hasPrefix("unique") { results.append("\(name) \(text(median(times))) ms") }
      }
      return results.joined(separator: "; ")
    }
  },
  Scenario(name: "opening 100,000 with an index : without") { backend in
    try await withDirectory { directory in
      let first = try await backend.open(in: directory, RepositorySchema<Place>("places"))
      try await first.save(contentsOf: PlaceSample.all.enumerated().map { Place($0.offset, $0.element) })
      try await first.close()
      let declared: [[RepositoryIndex<Place>]] = [[], [.ordered(\.country, \.rating)], [.unique(\.slug)], [.fullText(\.name, \.notes)]]
      var times = declared.map { _ in [Double]() }
      for _ in 0..<5 {
        for (number, indexes) in declared.enumerated() {
          let start = clock.now
          let repository = try await backend.open(in: directory, .init("places", indexes: indexes), StoreOptions(indexing: .eager))
          times[number].append((clock.now - start).microseconds / 1_000)
          try await repository.close()
        }
      }
      let found = times.map(median)
      return "\(text(found[0])) ms without, \(text(found[1])) ms ordered, \(text(found[2])) ms unique, \(text(found[3])) ms full text;"
        + " unique \(text(found[2] / found[0])) times"
    }
  },
]
