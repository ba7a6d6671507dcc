import Foundation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Indexes that note changes and apply them when they are asked: at every commit they hold what is there, whoever asks when.
@Suite(.timeLimit(.minutes(15))) struct FollowedIndexTests {
  /// The records of a commit, and the indexes that have followed them.
  private struct Commit {
    var slots: [RecordKey: RecordSlot] = [:]
    var indexes: Larder.IndexSet
  }

  private let declared: [RepositoryIndex<Thing>] = [.ordered(\.country, \.rating), .geo(\.latitude, \.longitude), .fullText(\.notes)]
  private let coder = RecordCoder<Thing>(schemaVersion: 1, limits: .init())

  @Test func everyCommitHasItsOwnContent() throws {
    for seed in Seeds.list(2, for: "followed indexes") {
      var random = SeededGenerator(seed)
      var commits = [try first(60, &random)]
      for step in 0..<30 {
        // Mostly the newest goes on; at times an older one, as behind a write that was taken back.
        var commit = commits[
          Int.random(in: 0..<8, using: &random) == 0 ? Int.random(in: commits.indices, using: &random) : commits.count - 1]
        // Some are many: they are applied in the background, and beyond a limit by the write itself.
        let count = [1, 1, 2, 20, 100, step == 20 ? 1_500 : 3].randomElement(using: &random) ?? 1
        for _ in 0..<count { try change(&commit, &random) }
        commits.append(commit)
        let asked = commits.randomElement(using: &random) ?? commit
        let index = Int.random(in: declared.indices, using: &random)
        // The store settles indexes in a pause; some that were copied before still have their changes.
        if Int.random(in: 0..<5, using: &random) == 0 {
          for (index, before, after) in commit.indexes.settled() {
            commits[commits.count - 1].indexes.settle(index, from: before, to: after)
          }
          #expect(!commits[commits.count - 1].indexes.keepChanges)
        }
        let isRight = try hasItsRecords(asked, index)
        #expect(isRight, "step \(step), \(declared[index]) | replay with LARDER_SEED=\(seed)")
      }
      for (number, commit) in commits.enumerated() {
        for index in declared.indices {
          let isRight = try hasItsRecords(commit, index)
          #expect(isRight, "commit \(number), \(declared[index]) | replay with LARDER_SEED=\(seed)")
        }
      }
    }
  }

  @Test func aPauseLetsGoOfWhatWasReplaced() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: declared))
    var random = SeededGenerator(1)
    try await things.save(contentsOf: (0..<20).map { Thing.random($0, using: &random) })
    _ = try await things.fetch(Query().sorted(by: \.country))
    weak let replaced = try things.snapshot.records[RecordKey("-493")]
    weak let deleted = try things.snapshot.records[RecordKey("-492")]
    #expect(replaced != nil && deleted != nil)
    try await things.save(Thing.random(7, using: &random))
    try await things.delete(-492)
    // A write that is taken back leaves nothing, either.
    let unwanted = Thing.random(9, using: &random)
    await #expect(throws: Stopped.self) {
      try await things.transaction { transaction in
        try transaction.save(unwanted, in: things)
        throw Stopped()
      }
    }
    try await until { replaced == nil && deleted == nil && !things.core.state.collections[things.collection].indexes.keepChanges }
    let all = try await things.fetch(Query().sorted(by: \.country))
    #expect(all.count == 19)
    try await things.close()
  }

  @MainActor @Test func aReadDoesNotSuspendForWhatWaits() async throws {
    let things = try await LocalRepository(inMemory: RepositorySchema<Thing>("things", indexes: declared))
    var random = SeededGenerator(1)
    try await things.save(contentsOf: (0..<50).map { Thing.random($0, using: &random) })
    let query = Query<Thing>().sorted(by: \.country).limit(5)
    _ = try await things.fetch(query)
    for id in 0..<50 { try await things.save(Thing.random(id, using: &random)) }
    // Whoever waits for the main actor gets it as soon as the read gives it up.
    let hasRun = Mutex(false)
    let other = Task { @MainActor in hasRun.withLock { $0 = true } }
    _ = try await things.fetch(query)
    let hasSuspended = hasRun.withLock { $0 }
    #expect(!hasSuspended)
    await other.value
    try await things.close()
  }

  private struct Stopped: Error {}

  /// Tests that what a write puts off is neither decoded nor read before somebody asks.
  @Test func aWriteReadsNothing() throws {
    var random = SeededGenerator(1)
    var commit = try first(60, &random)
    var thing = Thing.random(7, using: &random)
    // Numbers that are written in an unusual way are decoded as they are saved.
    (thing.height, thing.latitude, thing.longitude) = (2.5, 1.5, 1.5)
    let record = try coder.encode(thing, decoding: commit.indexes.needsValues(of: 1))
    _ = try coder.encode(thing, decoding: false)  // the first one of a coder is decoded, to try the type
    let slot = try coder.encode(thing, decoding: commit.indexes.needsValues(of: 1)).slot(at: Revision(2))
    #expect(record.key == slot.key)
    // Shared, as with the published state: what has one owner is a part of a larger write, and is changed at once.
    let published = commit.indexes
    let isContested = commit.indexes.replace(commit.slots[slot.key], with: slot)
    #expect(!isContested)
    #expect(slot.isEncoded)
    _ = published.body(0)
    #expect(slot.isEncoded)
    _ = commit.indexes.body(0)
    #expect(!slot.isEncoded)
  }

  private func first(_ count: Int, _ random: inout SeededGenerator) throws -> Commit {
    var commit = Commit(indexes: Larder.IndexSet(declared, coder))
    for id in 0..<count {
      let slot = try slot(id, &random)
      commit.slots[slot.key] = slot
    }
    try commit.indexes.build(Array(declared.indices), from: RecordMap(commit.slots.values.sorted { $0.key < $1.key }))
    return commit
  }

  private func slot(_ id: Int, _ random: inout SeededGenerator) throws -> RecordSlot {
    try coder.encode(Thing.random(id, using: &random), decoding: Bool.random(using: &random)).slot(at: Revision(1))
  }

  private func change(_ commit: inout Commit, _ random: inout SeededGenerator) throws {
    let new = try slot(Int.random(in: 0..<90, using: &random), &random)
    let isRemoved = Int.random(in: 0..<4, using: &random) == 0
    guard !isRemoved || commit.slots[new.key] != nil else { return }
    _ = commit.indexes.replace(commit.slots[new.key], with: isRemoved ? nil : new)
    commit.slots[new.key] = isRemoved ? nil : new
  }

  /// Whether an index finds just the slots of a commit, each where its present value is.
  private func hasItsRecords(_ commit: Commit, _ index: Int) throws -> Bool {
    let slots = commit.slots.values.sorted { $0.key < $1.key }
    let fresh = try commit.indexes.built([index], over: RecordMap(slots))[0]
    switch (commit.indexes.body(index), fresh) {
    case (.ordered(let tree), .ordered(let expected)):
      return entries(tree) == entries(expected)
    case (.geo(let geo), .geo(let expected)):
      return places(geo) == places(expected)
    case (.text(let text), .text(let expected)):
      return ["dawn", "cafe", "light", "storm ro"].allSatisfy { words in
        text.search(words).map { ObjectIdentifier($0.slot) } == expected.search(words).map { ObjectIdentifier($0.slot) }
      }
    default:
      return false
    }
  }

  private func entries(_ tree: PersistentTree<IndexEntry>) -> [ObjectIdentifier] {
    var slots: [ObjectIdentifier] = []
    tree.forEach(in: 0..<tree.count) { entry in
      slots.append(ObjectIdentifier(entry.slot))
      return true
    }
    return slots
  }

  private func places(_ geo: GeoIndex) -> [ObjectIdentifier] {
    var slots: [ObjectIdentifier] = []
    geo.nearest(to: 10, 10) { slot, _ in
      slots.append(ObjectIdentifier(slot))
      return true
    }
    return slots
  }
}
