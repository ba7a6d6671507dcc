import Foundation
import GRDB
import Larder

/// The record that queries find: a flat one, which every library keeps in columns or properties of its own.
protocol SomePlace: Codable, Identifiable, Sendable, FetchableRecord, PersistableRecord where ID: Hashable & Codable & Sendable {
  init(_ number: Int, _ sample: PlaceSample)
  static var best: Query<Self> { get }
  static var bestAscending: Query<Self> { get }
  static var index: RepositoryIndex<Self> { get }
}

struct Place: SomePlace {
  let id: UUID
  var name: String
  var slug: String
  var country: String
  var latitude: Double
  var longitude: Double
  var rating: Int
  var notes: String

  init(_ number: Int, _ sample: PlaceSample) {
    id = UUID(uuid: sample.identifier)
    (name, slug, country, rating, notes) = (sample.name, sample.slug, sample.country, sample.rating, sample.notes)
    (latitude, longitude) = (sample.latitude, sample.longitude)
  }

  static let databaseTableName = "place"
  static let index = RepositoryIndex<Place>.ordered(\.country, \.rating)
  static var best: Query<Place> {
    let country = "C7"
    return Query().where(#Predicate { $0.country == country && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(50)
  }
  static var bestAscending: Query<Place> {
    let country = "C7"
    return Query().where(#Predicate { $0.country == country && $0.rating >= 4 }).sorted(by: \.rating).limit(50)
  }
}

/// The same with a number for an id.
struct NumberedPlace: SomePlace {
  let id: Int
  var name: String
  var slug: String
  var country: String
  var latitude: Double
  var longitude: Double
  var rating: Int
  var notes: String

  init(_ number: Int, _ sample: PlaceSample) {
    id = number
    (name, slug, country, rating, notes) = (sample.name, sample.slug, sample.country, sample.rating, sample.notes)
    (latitude, longitude) = (sample.latitude, sample.longitude)
  }

  static let databaseTableName = "place"
  static let index = RepositoryIndex<NumberedPlace>.ordered(\.country, \.rating)
  static var best: Query<NumberedPlace> {
    let country = "C7"
    return Query().where(#Predicate { $0.country == country && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(50)
  }
  static var bestAscending: Query<NumberedPlace> {
    let country = "C7"
    return Query().where(#Predicate { $0.country == country && $0.rating >= 4 }).sorted(by: \.rating).limit(50)
  }
}

/// One of 40 countries, a rating from 1 to 5, a place on the globe, and 20 words of which few are common and many are rare.
struct PlaceSample {
  let identifier: uuid_t
  let name: String
  let slug: String
  let country: String
  let latitude: Double
  let longitude: Double
  let rating: Int
  let notes: String

  static let count = 100_000

  static let all: [PlaceSample] = {
    var numbers = Numbers(3)
    return (0..<count).map { PlaceSample($0, &numbers) }
  }()

  private init(_ number: Int, _ numbers: inout Numbers) {
    identifier = unsafeBitCast((numbers.next(), numbers.next()), to: uuid_t.self)
    name = "Spot number \(number)"
    slug = "spot-\(number)"
    country = "C\(Int.random(in: 0..<40, using: &numbers))"
    latitude = asin(Double.random(in: -1...1, using: &numbers)) * 180 / .pi
    longitude = Double.random(in: -180..<180, using: &numbers)
    rating = Int.random(in: 1...5, using: &numbers)
    notes = (0..<20).map { _ in Vocabulary.word(&numbers) }.joined(separator: " ")
  }
}

/// 5,000 words of syllables; the word of rank r is drawn as often as 1 / r, as in a language.
enum Vocabulary {
  static let words: [String] = {
    let syllables = "ka ri mo ta ne su lo pi ha ve do gu ja wa ze bo fi le nu ro".split(separator: " ")
    return (0..<5_000).map { number in
      var (rest, word) = (number * 7_919 % 8_000, "")
      for _ in 0..<3 {
        word += syllables[rest % syllables.count]
        rest /= syllables.count
      }
      return word
    }
  }()

  private static let shares: [Double] = {
    var sum = 0.0
    return (1...words.count).map { rank in
      sum += 1 / Double(rank)
      return sum
    }
  }()

  static func word(_ numbers: inout Numbers) -> String {
    let share = Double.random(in: 0..<(shares.last ?? 1), using: &numbers)
    var (low, high) = (0, shares.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if shares[middle] > share { high = middle } else { low = middle + 1 }
    }
    return words[low]
  }
}
