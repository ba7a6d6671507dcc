import Foundation

@testable import Larder

/// A record with a property of every kind that can be asked for; values come from small sets, so that many are equal.
struct Thing: Codable, Identifiable, Sendable, Equatable {
  enum Kind: String, Codable, Sendable, CaseIterable, IndexableValue { case pier, beach, summit }

  let id: Int
  var country: String
  var kind: Kind
  var rating: Int
  var height: Double
  var score: Int?
  var day: Date
  var isOpen: Bool
  var isSure: Bool?
  var tags: [String]
  var latitude: Double
  var longitude: Double
  var notes: String

  static func random(_ id: Int, using generator: inout SeededGenerator) -> Thing {
    let countries = ["JP", "NO", "Åland", "A\u{30A}land", "", "jp", "é", "e\u{301}", "Zz"]
    let words = ["lighthouse", "dawn", "Pier", "tide", "Café", "cafe", "storm", "münster", "rock", "light"]
    return Thing(
      id: id - 500, country: countries.randomElement(using: &generator) ?? "",
      kind: Kind.allCases.randomElement(using: &generator) ?? .pier, rating: Int.random(in: 0...5, using: &generator),
      height: [-1.5, -0.0, 0, 2.25, 1e300, 7].randomElement(using: &generator) ?? 0,
      score: Bool.random(using: &generator) ? nil : Int.random(in: -2...2, using: &generator),
      day: Date(timeIntervalSince1970: Double(Int.random(in: 0...20, using: &generator)) * 86_400),
      isOpen: Bool.random(using: &generator), isSure: [true, false, nil].randomElement(using: &generator) ?? nil,
      tags: Array(words.shuffled(using: &generator).prefix(2)),
      latitude: [90, -90, 0, Double.random(in: -90...90, using: &generator)].randomElement(using: &generator) ?? 0,
      longitude: [180, -180, 179.5, Double.random(in: -180...180, using: &generator)].randomElement(using: &generator) ?? 0,
      notes: (0..<Int.random(in: 0...6, using: &generator)).map { _ in words.randomElement(using: &generator) ?? "" }
        .joined(separator: " "))
  }
}
