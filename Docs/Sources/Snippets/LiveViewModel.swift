import Foundation
import Larder

@MainActor final class BestList {
  private let live: LiveQuery<Spot>
  var titles: [String] { live.items.map { "\($0.name) \($0.rating)" } }
  var message: String? { live.error.map { "The spots cannot be read: \($0)" } }

  init(_ spots: some ObservableRepository<Spot>) {
    live = LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20))
  }
}
