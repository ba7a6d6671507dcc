import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Records in the storage and records in memory: the same operations have the same results.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ResidencyHistoryTests {
  /// A record whose old versions need a migration, and which does not decode if it is broken.
  struct Note: Codable, Identifiable, Sendable, Equatable {
    let id: String
    var text: String
    var rank: Int

    init(id: String, text: String, rank: Int) { (self.id, self.text, self.rank) = (id, text, rank) }

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      (id, text) = (try values.decode(String.self, forKey: .id), try values.decode(String.self, forKey: .text))
      rank = try values.decode(Int.self, forKey: .rank)
      if text == "broken" { throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "broken")) }
    }
  }

  private static let schema = RepositorySchema<Note>("notes", indexes: [.ordered(\.rank), .fullText(\.text)])

  /// Two stores, of which one keeps its records in memory and the other one in the storage.
  private struct Pair {
    let backends: [any StorageBackend]
    let options: [StoreOptions]
    var notes: [LocalRepository<Note>] = []
    var snapshots: [[RepositorySnapshot<Note>]] = []

    mutating func open() async throws {
      notes = []
      for (backend, options) in zip(backends, options) {
        notes.append(try await LocalRepository(backend: backend, schema: ResidencyHistoryTests.schema, options: options))
      }
    }

    /// Does the same in both stores, and compares the outcomes.
    func both(_ hint: Comment, _ body: (LocalRepository<Note>) async throws -> Void) async throws {
      try await both(hint) { notes in
        try await body(notes)
        return true
      }
    }

    func both<Output: Equatable>(
      _ hint: Comment, _ body: (LocalRepository<Note>) async throws -> Output
    ) async throws {
      var outcomes: [Outcome<Output>] = []
      for notes in notes {
        do { outcomes.append(.value(try await body(notes))) } catch let error as RepositoryError { outcomes.append(.error(error.code)) }
      }
      #expect(outcomes[0] == outcomes[1], hint)
    }
  }

  private enum Outcome<Output: Equatable>: Equatable {
    case value(Output)
    case error(RepositoryError.Code)
  }

  @Test(arguments: [TestBackend.memory, .json, .sqlite])
  func theSameOperationsHaveTheSameResults(_ backend: TestBackend) async throws {
    for seed in Seeds.list(Torture.count(backend == .memory ? 30 : 6, full: 200), for: "residency on \(backend)") {
      let places = [try backend.factory.makePlace(), try backend.factory.makePlace()]
      defer { for place in places { place.remove() } }
      var random = SeededGenerator(seed)
      let cache = ByteCount.bytes([0, 3_000, 10_000_000].randomElement(using: &random) ?? 0)
      var pair = Pair(
        backends: try places.map { try $0.makeBackend() },
        options: [.full, .onDisk(cache: cache)].map { StoreOptions(durability: .buffered, checkpoint: .manual, residency: $0) })
      try await pair.open()
      for step in 0..<60 {
        try await self.step(&pair, &random, "step \(step), replay with LARDER_SEED=\(seed)")
      }
      for notes in pair.notes { try await notes.close() }
    }
  }

  private func step(_ pair: inout Pair, _ random: inout SeededGenerator, _ hint: Comment) async throws {
    func note() -> Note {
      let text = ["pier", "tide at dawn", "broken", "light"].randomElement(using: &random) ?? ""
      return Note(id: "\(random.int(0..<40))", text: text, rank: random.int(0..<9))
    }
    let (one, id, rank, discards) = (note(), "\(random.int(0..<40))", random.int(0..<9), random.chance(50))
    let many = (0..<random.int(0..<20)).map { _ in note() }
    switch random.int(0..<14) {
    case 0...2: try await pair.both(hint) { try await $0.save(one) }
    case 3: try await pair.both(hint) { try await $0.save(contentsOf: many) }
    case 4: try await pair.both(hint) { try await $0.delete(id) }
    case 5: try await pair.both(hint) { try await $0.replaceAll(with: many, discardingUndecodable: discards) }
    case 6: try await pair.both(hint) { notes in try await notes.save(one, ifRevision: notes.revision(of: one.id)) }
    case 7:
      try await pair.both(hint) { notes in
        try await notes.update(id) { $0.rank += 1 }
      }
    case 8: try await pair.both(hint) { try await $0.delete(where: Query().where(\.rank, .equal, rank)) }
    case 9: for notes in pair.notes { try await notes.checkpoint() }
    case 10:
      pair.snapshots = []
      for notes in pair.notes { try await notes.close() }
      try await pair.open()
    case 11: pair.snapshots.append(pair.notes.map(\.snapshot))
    default: break
    }
    // Both repositories return the same results, and so do the snapshots of earlier steps.
    try await pair.both(hint) { try await $0.loadAll() }
    try await pair.both(hint) { try await $0.find(by: id) }
    try await pair.both(hint) { try await $0.exists(id) }
    try await pair.both(hint) { $0.revision(of: id) }
    try await pair.both(hint) { try await $0.fetch(Query().where(\.rank, .greaterOrEqual, rank).sorted(by: \.rank, .reverse).limit(5)) }
    try await pair.both(hint) { try await $0.fetch(Query().matching("tide")) }
    try await pair.both(hint) { try await $0.page(Query().sorted(by: \.text), limit: 7).items }
    try await pair.both(hint) { try await $0.grouped(by: \.rank) }
    try await pair.both(hint) { try await $0.count() }
    try await pair.both(hint) { $0.snapshot.undecodable.map(\.key) }
    for snapshots in pair.snapshots {
      #expect(snapshots[0].loadAll() == snapshots[1].loadAll(), hint)
      let found = try snapshots.map { try $0.fetch(Query().where(\.rank, .equal, rank)) }
      #expect(found[0] == found[1], hint)
    }
  }
}
