import Foundation

/// The value most tests keep.
struct Spot: Codable, Identifiable, Hashable, Sendable {
  let id: UUID
  var name: String
  var country = "JP"
  var rating = 3

  init(_ name: String, id: UUID = UUID(), rating: Int = 3) {
    self.id = id
    self.name = name
    self.rating = rating
  }
}
