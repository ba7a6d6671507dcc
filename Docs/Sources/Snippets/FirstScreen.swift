internal import Foundation
internal import Larder

#if canImport(SwiftUI)
  internal import SwiftUI
#endif

@MainActor func firstScreen() async throws {
  struct Spot: Codable, Identifiable {
    let id: String
    var rating: Int
  }
  struct BestSpots: View {
    @State var best: LiveQuery<Spot>
    var body: some View { List(best.items) { spot in Text(spot.id) } }
  }

  let spots = try await LocalRepository<Spot>(filename: "spots.json")
  try await spots.save(Spot(id: "Jogashima", rating: 5))
  let good = try await spots.fetch(where: #Predicate { $0.rating >= 4 })
  let view = BestSpots(best: LiveQuery(spots, Query().sorted(by: \.rating, .reverse)))

  print(good.count, view)
}
