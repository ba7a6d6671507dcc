import Foundation
import Larder

@MainActor final class SpotList {
  private let repository: any Repository<Spot>
  private(set) var spots: [Spot] = []
  private(set) var message: String?

  init(_ repository: any Repository<Spot>) { self.repository = repository }

  func load() async {
    do {
      spots = try await repository.loadAll().sorted { $0.name < $1.name }
      message = nil
    } catch {
      message = "The spots cannot be read: \(error)"
    }
  }
}
