import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A record under an id of any kind; the note tells records apart whose ids Swift calls equal.
struct Tagged<ID: Hashable & Codable & Sendable>: Codable, Identifiable, Sendable {
  let id: ID
  var note: Int
}

@Suite(.timeLimit(.minutes(15))) struct IdTests {
  private struct RawText: RawRepresentable, Hashable, Codable { var rawValue: String }
  private struct RawNumber: RawRepresentable, Hashable, Codable { var rawValue: Int }
  private struct RawIdentity: RawRepresentable, Hashable, Codable { var rawValue: UUID }
  private struct RawRaw: RawRepresentable, Hashable, Codable { var rawValue: RawText }
  private struct RawPlace: RawRepresentable, Hashable, Codable { var rawValue: Place }
  private struct Place: Hashable, Codable { var city: String, day: Int }
  private struct Nested: Hashable, Codable { var place: Place, tags: [String], parent: UUID?, isPier: Bool }
  private enum Kind: String, Codable { case pier, cape }
  private enum Number: Int, Codable { case one = 1, two = 2 }
  private enum Case: Hashable, Codable { case none, name(String), pair(Int, y: Int) }

  @Test(arguments: TestBackend.allCases)
  func everyStringIsAnId(_ backend: TestBackend) async throws {
    try await keeps(
      [
        "", " ", "a", "A", "a\0", "a\0one", "a\0two", "\0", "caf\u{E9}", "cafe\u{301}", "../x", "..", "/", "a/b", "null", "1", "01", "\"",
        "\\", "line\nfeed", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "\u{10FFFF}", "\u{FEFF}", "\u{2028}", "';--",
        String(repeating: "k", count: 1_024), String(repeating: "\u{E9}", count: 512),
      ], on: backend)
  }

  @Test func everyWidthOfIntegerIsAnId() async throws {
    try await keeps([Int.min, -1, 0, 1, Int.max])
    try await keeps([Int8.min, -1, 0, 1, Int8.max])
    try await keeps([Int16.min, -1, 0, 1, Int16.max])
    try await keeps([Int32.min, -1, 0, 1, Int32.max])
    try await keeps([Int64.min, -1, 0, 1, Int64.max])
    try await keeps([UInt.min, 1, UInt.max])
    try await keeps([UInt8.min, 1, UInt8.max])
    try await keeps([UInt16.min, 1, UInt16.max])
    try await keeps([UInt32.min, 1, UInt32.max])
    try await keeps([UInt64.min, 1, UInt64.max, UInt64(Int64.max) + 1])
    try await keeps([Int128.min, -1, 0, 1, Int128.max])
    try await keeps([UInt128.min, 1, UInt128.max])
  }

  @Test(arguments: TestBackend.allCases)
  func structuredValuesAreIds(_ backend: TestBackend) async throws {
    try await keeps([UUID(), UUID(), UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))], on: backend)
    try await keeps(
      [Place(city: "Ise", day: 1), Place(city: "Ise", day: 2), Place(city: "", day: 1), Place(city: "\",\"day\":9", day: 1)],
      on: backend)
    let id = UUID()
    try await keeps(
      [
        Nested(place: Place(city: "Ise", day: 1), tags: [], parent: nil, isPier: true),
        Nested(place: Place(city: "Ise", day: 1), tags: ["a"], parent: id, isPier: true),
        Nested(place: Place(city: "Ise", day: 1), tags: ["a", "b"], parent: id, isPier: false),
        Nested(place: Place(city: "Ise", day: 1), tags: ["ab"], parent: id, isPier: false),
      ], on: backend)
  }

  @Test func otherKindsOfIdWork() async throws {
    try await keeps([RawText(rawValue: ""), RawText(rawValue: "a\0one"), RawText(rawValue: "a\0two")])
    try await keeps([RawNumber(rawValue: -1), RawNumber(rawValue: 1)])
    try await keeps([RawIdentity(rawValue: UUID()), RawIdentity(rawValue: UUID())])
    try await keeps([RawRaw(rawValue: RawText(rawValue: "a")), RawRaw(rawValue: RawText(rawValue: "b"))])
    try await keeps([RawPlace(rawValue: Place(city: "a", day: 1)), RawPlace(rawValue: Place(city: "a", day: 2))])
    try await keeps([Kind.pier, .cape])
    try await keeps([Number.one, .two])
    try await keeps([Case.none, .name(""), .name("none"), .pair(1, y: 2), .pair(2, y: 1)])
    try await keeps([true, false])
    try await keeps([["a", "b"], ["ab"], ["a,b"], []])
    try await keeps([String?.none, .some(""), .some("null")])
    try await keeps([Date(timeIntervalSinceReferenceDate: 0), Date(timeIntervalSinceReferenceDate: 0.1)])
    try await keeps([Double.pi, 0.1, 1, -1, 1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude])
    try await keeps([Float(0.1), 1, -1])
  }

  @Test func negativeZeroIsKeptApartFromZero() async throws {
    try await keeps([0.0, -0.0])  // Swift calls them equal; their bytes differ, as those of the two spellings of "café" do
  }

  @Test func numbersThatJSONCannotWriteAreNoIds() async throws {
    let items = try await LocalRepository<Tagged<Double>>()
    for number in [Double.nan, .infinity, -.infinity] {
      #expect(await code { try await items.save(Tagged(id: number, note: 1)) } == .invalidKey)
      #expect(await code { _ = try await items.find(by: number) } == .invalidKey)
      #expect(await code { try await items.delete(number) } == .invalidKey)
    }
    #expect(try await items.count() == 0)
  }

  @Test func anIdLongerThanTheLimitIsRefused() async throws {
    let items = try await LocalRepository<Tagged<String>>()
    let long = String(repeating: "k", count: 1_025)
    let failed = [
      await code { try await items.save(Tagged(id: long, note: 1)) },
      await code { try await items.insert(Tagged(id: String(repeating: "\u{E9}", count: 513), note: 1)) },
      await code { try await items.save(contentsOf: [Tagged(id: "short", note: 1), Tagged(id: long, note: 1)]) },
      await code { try await items.replaceAll(with: [Tagged(id: long, note: 1)]) },
      await code { _ = try await items.find(by: long) },
      await code { try await items.update(long) { $0.note = 2 } },
      await code { try await items.delete(long) },
    ]
    #expect(failed.allSatisfy { $0 == .invalidKey }, "\(failed)")
    #expect(items.revision(of: long) == nil)
    #expect(try await items.count() == 0)
  }

  @Test func anIdThatItsOwnCodingDoesNotKeepIsRefused() async throws {
    struct Lossy: Hashable, Codable {
      var kept: Int
      var dropped: Int
      init(_ kept: Int, _ dropped: Int) { (self.kept, self.dropped) = (kept, dropped) }
      init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(Int.self), 0) }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(kept)
      }
    }
    let items = try await LocalRepository<Tagged<Lossy>>()
    try await items.save(Tagged(id: Lossy(1, 0), note: 1))
    #expect(await code { try await items.save(Tagged(id: Lossy(1, 7), note: 2)) } == .invalidKey)
    #expect(try await items.find(by: Lossy(1, 0))?.note == 1)
  }

  @Test func aRawValueThatItsOwnCodingDoesNotKeepIsRefused() async throws {
    struct Lossy: RawRepresentable, Hashable, Codable {
      struct Raw: Hashable, Codable {
        var kept: Int
        var dropped = 0
        private enum CodingKeys: CodingKey { case kept }
      }
      var rawValue: Raw
    }
    let items = try await LocalRepository<Tagged<Lossy>>()
    try await items.save(Tagged(id: Lossy(rawValue: .init(kept: 1)), note: 1))
    #expect(await code { try await items.save(Tagged(id: Lossy(rawValue: .init(kept: 1, dropped: 7)), note: 2)) } == .invalidKey)
    #expect(try await items.count() == 1)
  }

  @Test func aRawValueThatIsNilIsNotTheTextNull() async throws {
    struct Maybe: RawRepresentable, Hashable, Codable { var rawValue: String? }
    try await keeps([Maybe(rawValue: nil), Maybe(rawValue: "null"), Maybe(rawValue: "")])
  }

  @Test func anIdThatIsNeverCodedIsRefusedAtTheFirstSave() async throws {
    struct Fresh: Codable, Identifiable {
      let id = UUID()
      var name: String
      private enum CodingKeys: CodingKey { case name }
    }
    let items = try await LocalRepository<Fresh>()
    #expect(await code { try await items.save(Fresh(name: "never found again")) } == .decodingFailed)
    #expect(try await items.count() == 0)
  }

  @Test func anUpdateCannotChangeTheId() async throws {
    struct Named: Codable, Identifiable, Hashable { var id: String, note: Int }
    let items = try await LocalRepository<Named>()
    try await items.save(contentsOf: [Named(id: "caf\u{E9}", note: 1), Named(id: "other", note: 2)])
    for id in ["cafe\u{301}", "other"] {
      #expect(await code { try await items.update("caf\u{E9}") { $0.id = id } } == .invalidKey)
    }
    #expect(try await items.loadAll().map(\.note) == [1, 2])
  }

  /// Saves a record under each id, and finds each again under its own id only: at once, after reopening, and after deleting half of them.
  private func keeps<ID: Hashable & Codable & Sendable>(_ ids: [ID], on backend: TestBackend = .memory) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var items = try await LocalRepository<Tagged<ID>>(backend: try place.makeBackend())
    for (note, id) in ids.enumerated() { try await items.insert(Tagged(id: id, note: note)) }
    for _ in 0..<2 {
      let count = try await items.count()
      #expect(count == ids.count, "\(ID.self)")
      for (note, id) in ids.enumerated() {
        let found = try await items.find(by: id)
        #expect(found?.note == note, "\(ID.self) number \(note)")
      }
      try await items.close()
      items = try await LocalRepository<Tagged<ID>>(backend: try place.makeBackend())
    }
    #expect(try await items.loadAll().map(\.note).sorted() == Array(ids.indices))
    for (note, id) in ids.enumerated() where note.isMultiple(of: 2) {
      let wasThere = try await items.delete(id)
      #expect(wasThere, "\(ID.self) number \(note)")
    }
    #expect(try await items.loadAll().map(\.note).sorted() == ids.indices.filter { !$0.isMultiple(of: 2) })
    try await items.close()
  }
}
