import Foundation

/// The record that everything is measured with: a real place, flat, with 11 fields, in about 266 bytes of JSON.
package struct Place: Codable, Identifiable, Hashable, Sendable {
  package let id: UUID
  package var name: String
  package var slug: String
  package var country: String
  package var timezone: String
  package var latitude: Double
  package var longitude: Double
  package var population: Int
  package var rating: Int
  package var isFavorite: Bool
  package var notes: String

  /// Makes the record of a place in GeoNames' list.
  ///
  /// - Parameter turn: How often the list was used up before, with which ids and slugs stay unique.
  init(_ row: PlaceRow, turn: Int) {
    var numbers = SeededNumbers(UInt64(row.number) &* 31 &+ UInt64(turn))
    id = UUID(uuid: unsafeBitCast((numbers.next(), numbers.next()), to: uuid_t.self))
    name = row.name
    slug = Self.slug(of: row.name, row.number, turn)
    country = row.country
    timezone = row.timezone
    (latitude, longitude, population) = (row.latitude, row.longitude, row.population)
    rating = Int.random(in: 1...5, using: &numbers)
    isFavorite = Int.random(in: 0..<20, using: &numbers) == 0
    notes = (0..<5).map { _ in Vocabulary.word(&numbers) }.joined(separator: " ")
  }

  private static func slug(of name: String, _ number: Int, _ turn: Int) -> String {
    let letters = name.lowercased().unicodeScalars.map { $0.isASCII && $0.properties.isAlphabetic ? Character($0) : "-" }
    return "\(String(letters.prefix(20)))-\(number)" + (turn == 0 ? "" : "-\(turn)")
  }

  /// Returns the same place with another population, which no two rounds share: a store may skip bytes that it has already.
  package func changed(_ round: Int) -> Place {
    var place = self
    place.population = 1_000_000 + round
    return place
  }
}

/// The same numbers in every run.
package struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
