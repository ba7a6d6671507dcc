internal import Foundation
internal import Larder
internal import TestSupport

/// A record with an index of every kind, one of them unique.
package struct Place: Codable, Identifiable, Hashable, Sendable {
  package let id: Int
  var slug: String
  var name: String
  var value: Int
  var rank: Int?
  var latitude: Double
  var longitude: Double

  /// The ids that there are: of two digits, so that their order is that of their keys.
  static let ids = 10..<34
  /// The words of names; none is the beginning of another.
  static let words = ["pier", "reef", "dune", "cove", "tide"]

  static let schema = RepositorySchema<Place>(
    "places",
    indexes: [.unique(\.slug), .ordered(\.value), .ordered(\.name, \.value), .fullText(\.name), .geo(\.latitude, \.longitude)])

  static func random(_ id: Int, using random: inout SeededGenerator) -> Place {
    Place(
      id: id, slug: "s\(random.chance(4) ? random.int(ids) : id)", name: "\(words[random.int(0..<5)]) \(words[random.int(0..<5)])",
      value: random.int(0..<100), rank: random.chance(30) ? nil : random.int(0..<6), latitude: Double(random.int(-80..<80)),
      longitude: Double(random.int(-170..<170)))
  }
}
