// says: invalid conversion from throwing function of type
import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
}

struct Button { init(_ title: String, action: @escaping @MainActor () -> Void) {} }

func button(_ spots: LocalRepository<Spot>) -> Button {
  Button("Add") {
    try await spots.save(Spot(id: UUID(), name: "Jogashima"))
  }
}
