import Foundation

/// The value that every scenario keeps: about 270 bytes of JSON.
struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var country: String
  var latitude: Double
  var longitude: Double
  var rating: Int
  var tags: [String]
  var notes: String

  static func sample(_ number: Int) -> Spot {
    Spot(
      id: UUID(), name: "Spot number \(number)", country: ["JP", "GR", "CL", "NO"][number % 4], latitude: 35.158 + Double(number) / 1e5,
      longitude: 139.618 - Double(number) / 1e5, rating: number % 5 + 1, tags: ["pier", "lighthouse"],
      notes: "Best two hours before high water; parking is free on weekdays.")
  }
}
