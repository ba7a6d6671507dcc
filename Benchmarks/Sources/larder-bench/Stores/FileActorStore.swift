import BenchmarkRecords
import Foundation

/// The store that apps write themselves: a dictionary in an actor, and one JSON file that every save rewrites.
actor FileActorStore {
  private let file: URL
  private var places: [UUID: Place] = [:]

  init(in directory: URL) throws {
    file = directory.appendingPathComponent("places.actor.json")
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    for place in try JSONDecoder().decode([Place].self, from: Data(contentsOf: file)) { places[place.id] = place }
  }

  func find(_ id: UUID) -> Place? { places[id] }

  func save(_ place: Place) throws {
    places[place.id] = place
    try write()
  }

  func save(contentsOf all: [Place]) throws {
    for place in all { places[place.id] = place }
    try write()
  }

  private func write() throws {
    // As such code does it: replaced in one step, and not synced.
    try JSONEncoder().encode(Array(places.values)).write(to: file, options: .atomic)
  }
}

/// A dictionary that an actor isolates: what a store in memory cannot be faster than from another task.
actor DictionaryStore {
  private let places: [UUID: Place]

  init(_ places: [Place]) { self.places = Dictionary(places.map { ($0.id, $0) }) { first, _ in first } }

  func find(_ id: UUID) -> Place? { places[id] }
}
