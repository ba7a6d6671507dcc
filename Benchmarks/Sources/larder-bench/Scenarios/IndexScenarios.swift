import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

private let declared: [(name: String, indexes: [RepositoryIndex<Place>])] = [
  ("no index", []), ("1 ordered", [Place.Indexes.ordered]), ("1 unique", [Place.Indexes.unique]), ("1 geo", [Place.Indexes.geo]),
  ("1 text", [Place.Indexes.text]), ("4 indexes", Place.Indexes.four),
]

let indexScenarios = [
  saving(
    "index-cost", "Save with indexes, buffered", .buffered, 400,
    goals: [
      Goal("1 ordered", .adds(4, over: "no index")), Goal("1 unique", .adds(6, over: "no index")),
      Goal("1 text", .adds(30, over: "no index")),
      Goal("4 indexes", .adds(45, over: "no index")),
    ]),
  saving("index-cost-durable", "Save with indexes, durably", .durable, 100, goals: []),
]

/// Returns a scenario that saves changed records among all of them; rating, slug, place and notes change, so that every index does.
private func saving(_ name: String, _ title: String, _ durability: Durability, _ usual: Int, goals: [Goal]) -> Scenario {
  Scenario(
    name: name, group: .indexes, title: title, operation: "save", base: "no index", goals: goals,
    notes: [
      "In a JSON store; every indexed field changes at every save.",
      "A save notes what an index that is not unique has to follow; it is applied in the background, by the next query, or from 512 changes on by the save.",
    ]
  ) { bench in
    guard bench.wants(.json) else { return [] }
    let places = try bench.places()
    let count = bench.operations(usual)
    return try await withDirectory { directory in
      var (contenders, stores): ([Contender], [LarderStore]) = ([], [])
      for (name, indexes) in declared {
        let options = StoreOptions(durability: durability, checkpoint: .manual, indexing: .eager)
        let store = try await LarderStore(.json, in: directory.making("\(stores.count)"), options, indexes: indexes)
        try await store.save(contentsOf: places)
        try await store.checkpoint()
        stores.append(store)
        contenders.append(
          .timed(name, .larder, operations: count) { round in
            for operation in 0..<count {
              let number = round * count + operation
              try await store.save(moved(places[number * 31 % places.count], number))
            }
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(11))
      for store in stores { try await store.close() }
      return series
    }
  }
}

/// Returns a place with other values in all fields that have an index.
private func moved(_ place: Place, _ number: Int) -> Place {
  var place = place.changed(number)
  place.rating = place.rating % 5 + 1
  place.slug = "new-\(number)"
  place.latitude = place.latitude > 0 ? place.latitude - 1 : place.latitude + 1
  place.notes = (0..<5).map { Vocabulary.words[(number * 7 + $0 * 13) % Vocabulary.words.count] }.joined(separator: " ")
  return place
}
