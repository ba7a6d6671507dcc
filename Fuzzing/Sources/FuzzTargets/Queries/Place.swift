import Dispatch
import Foundation
import LarderTesting
import Synchronization

@testable import Larder

/// A record that is asked for; values come from small sets, so that many are equal.
struct Place: Codable, Identifiable, Sendable, Equatable {
  let id: Int
  var country: String
  var rating: Int
  var height: Double
  var score: Int?
  var latitude: Double
  var longitude: Double
  var notes: String

  static let countries = ["JP", "NO", "Åland", "A\u{30A}land", "", "jp", "é", "e\u{301}", "Zz"]
  static let words = ["lighthouse", "dawn", "Pier", "Café", "storm", "münster", "light", "灯台", "l'eau", "3.14"]
  static let heights = [-1.5, -0.0, 0, 2.25, 1e300, 7]

  static func random(_ id: Int, using generator: inout SeededGenerator) -> Place {
    Place(
      id: id - 20, country: countries.randomElement(using: &generator) ?? "", rating: Int.random(in: 0...5, using: &generator),
      height: heights.randomElement(using: &generator) ?? 0,
      score: Bool.random(using: &generator) ? nil : Int.random(in: -2...2, using: &generator),
      latitude: [90, -90, 0, Double.random(in: -90...90, using: &generator)].randomElement(using: &generator) ?? 0,
      longitude: [180, -180, 179.5, Double.random(in: -180...180, using: &generator)].randomElement(using: &generator) ?? 0,
      notes: (0..<Int.random(in: 0...5, using: &generator)).map { _ in words.randomElement(using: &generator) ?? "" }
        .joined(separator: " "))
  }
}

/// Sixty places in memory, with and without indexes: made once, since queries do not change them.
struct Places: Sendable {
  let all: [Place]
  let indexed: LocalRepository<Place>
  let plain: LocalRepository<Place>

  static let shared = Result { try make() }

  private static func make() throws -> Places {
    var generator = SeededGenerator(seed: 20_261_123)
    let all = (0..<60).map { Place.random($0, using: &generator) }
    let made = Mutex<Result<Places, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task {
      do {
        let indexes: [RepositoryIndex<Place>] = [
          .ordered(\Place.country, \.rating), .ordered(\Place.height), .ordered(\Place.score), .geo(\Place.latitude, \.longitude),
          .fullText(\Place.notes),
        ]
        let options = StoreOptions(indexing: .eager)
        let indexed = try await LocalRepository(
          backend: InMemoryBackend(), schema: RepositorySchema<Place>("places", indexes: indexes), options: options)
        let plain = try await LocalRepository(backend: InMemoryBackend(), schema: RepositorySchema<Place>("places"), options: options)
        try await indexed.save(contentsOf: all)
        try await plain.save(contentsOf: all)
        made.withLock { $0 = .success(Places(all: all, indexed: indexed, plain: plain)) }
      } catch {
        made.withLock { $0 = .failure(error) }
      }
      done.signal()
    }
    done.wait()
    guard let result = made.withLock({ $0 }) else { throw BrokenPromise("the places were not made") }
    return try result.get()
  }
}
