import Foundation
import Larder
import Testing

/// Types with a raw value that make index values of their own: what an index finds is checked, whatever the type takes over from its raw
/// value.
@Suite(.timeLimit(.minutes(15)))
struct RawIndexValueTests {
  /// Written before there was `hasExactIndexValues`: 10 and 15 have one index value.
  enum Size: Int, Codable, IndexableValue {
    case small = 10
    case medium = 15
    case large = 20
    var indexValue: IndexValue { (rawValue / 10).indexValue }
  }

  /// Seen for the first time as a constant of a predicate.
  enum Color: Int, Codable, IndexableValue {
    case red = 1
    case blue = 10
    var indexValue: IndexValue { self == .blue ? IndexValue(Int64(1)) : IndexValue(Int64(rawValue)) }
  }

  enum Plain: String, Codable, IndexableValue { case pier, beach }

  struct Shirt: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var size: Size
    var spare: Size?
    var color = Color.red
    var plain = Plain.pier
  }

  private static let shirts = [
    Shirt(id: 1, size: .small, spare: .medium), Shirt(id: 2, size: .medium), Shirt(id: 3, size: .large, spare: .small, plain: .beach),
    Shirt(id: 4, size: .medium, spare: .medium),
  ]

  private func store() async throws -> LocalRepository<Shirt> {
    let schema = RepositorySchema<Shirt>(
      "shirts", indexes: [.ordered(\.size), .ordered(\.spare), .ordered(\.color), .ordered(\.plain)])
    let store = try await LocalRepository(inMemory: schema)
    try await store.save(contentsOf: Self.shirts)
    return store
  }

  @Test func valuesWithOneIndexValueAreToldApart() async throws {
    let store = try await store()
    for size in [Size.small, .medium, .large] {
      let query = Query<Shirt>().where(#Predicate { $0.size == size })
      let expected = Self.shirts.filter { $0.size == size }
      for _ in 0..<2 {
        #expect(try await store.fetch(query) == expected)
        #expect(try await store.count(query) == expected.count)
      }
      let spare: Size? = size
      let spares = Query<Shirt>().where(#Predicate { $0.spare == spare })
      #expect(try await store.fetch(spares) == Self.shirts.filter { $0.spare == spare })
      #expect(try await store.count(spares) == Self.shirts.count { $0.spare == spare })
    }
    #expect(try await store.grouped(by: \.size) == [.small: 1, .medium: 2, .large: 1])
    let first = Query<Shirt>().where(#Predicate { $0.id < 3 })
    #expect(try await store.grouped(by: \.size, first) == [.small: 1, .medium: 1])
  }

  @Test func aConstantIsLookedAtToo() async throws {
    let store = try await store()
    // All that are stored have the index value of their raw value, which the constant has as its own.
    let color = Color.blue
    let query = Query<Shirt>().where(#Predicate { $0.color == color })
    #expect(try await store.count(query) == 0)
    #expect(try await store.fetch(query).isEmpty)
  }

  @Test func aPlainEnumerationIsAnsweredByItsIndexAlone() async throws {
    let store = try await store()
    let plain = Plain.pier
    let plan = store.explain(Query<Shirt>().where(#Predicate { $0.plain == plain }))
    #expect(plan.conditions == ["plain ="])
    #expect(plan.residual.isEmpty)
  }
}
