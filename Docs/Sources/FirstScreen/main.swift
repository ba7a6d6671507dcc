import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var rating: Int
}

let spots = try await LocalRepository<Spot>(filename: "spots.json")
try await spots.save(Spot(id: UUID(), name: "Jogashima", rating: 5))
let good = try await spots.fetch(Query().where(#Predicate { $0.rating >= 4 }).sorted(by: \.name))
print(good.map(\.name))
