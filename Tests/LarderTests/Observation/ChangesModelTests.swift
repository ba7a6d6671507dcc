import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Random writes by several tasks, while readers that pause and resume make a copy of the contents from what they are told.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ChangesModelTests {
  private typealias Registers = LocalRepository<Register>

  @Test(arguments: [TestBackend.memory, .json, .sqlite])
  func whatReadersAreToldAddsUpToTheContents(_ backend: TestBackend) async throws {
    for seed in Seeds.list(backend == .memory ? Torture.count(25, full: 60) : Torture.count(5, full: 10), for: "changes on \(backend)") {
      do {
        try await run(seed, on: backend)
      } catch {
        Issue.record("\(error); replay with LARDER_SEED=\(seed)")
        return
      }
    }
  }

  private func run(_ seed: UInt64, on backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    let options = StoreOptions(durability: .buffered, checkpoint: .manual)
    let registers = try await Registers(backend: try place.makeBackend(), options: options)
    try await registers.save(contentsOf: (0..<5).map { Register(id: $0, value: -1) })
    let start = Replica(registers.snapshot)
    let readers = (0..<3).map { reader in
      let changes = registers.changes(since: Revision(start.revision))
      return Task { try await Self.read(changes, from: start, of: registers, SeededGenerator(seed &+ UInt64(reader))) }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        let random = SeededGenerator(seed &* 31 &+ UInt64(writer))
        group.addTask { try await Self.write(to: registers, writer, random) }
      }
      try await group.waitForAll()
    }
    let end = Replica(registers.snapshot)
    try await registers.close()
    for reader in readers {
      let replica = try await reader.value
      try #require(replica.values == end.values, "\(replica) instead of \(end)")
    }
  }

  private static func write(to registers: Registers, _ writer: Int, _ generator: SeededGenerator) async throws {
    var random = generator
    for step in 0..<60 {
      let value = writer * 1_000 + step
      switch random.int(0..<10) {
      case 0..<5: try await registers.save(Register(id: random.int(0..<8), value: value))
      case 5..<8: try await registers.delete(random.int(0..<8))
      case 8:
        let (saved, deleted) = (random.int(0..<8), random.int(0..<8))
        try await registers.transaction { transaction in
          try transaction.delete(deleted, in: registers)
          try transaction.save(Register(id: saved, value: value), in: registers)
          try transaction.save(Register(id: saved, value: value + 500), in: registers)
        }
      default: try await registers.save(contentsOf: (0..<random.int(0..<4)).map { Register(id: $0, value: value) })
      }
    }
  }

  private static func read(
    _ changes: RepositoryChanges<Register>, from start: Replica, of registers: Registers, _ generator: SeededGenerator
  ) async throws -> Replica {
    var random = generator
    var replica = start
    var iterator = changes.makeAsyncIterator()
    while let set = try await iterator.next() {
      try replica.apply(set)
      for _ in 0..<(random.chance(30) ? random.int(0..<60) : 0) { await Task.yield() }
      if random.chance(5) { iterator = registers.changes(since: set.revision).makeAsyncIterator() }
    }
    return replica
  }

  /// The buffer against the states it stands for: each set that is taken leads to the state of its revision.
  @Test func everySetLeadsToACommittedState() throws {
    for seed in Seeds.list(Torture.count(500, full: 2_000), for: "change buffer") {
      var random = SeededGenerator(seed)
      var buffer = ChangeBuffer()
      var records: [RecordKey: RecordSlot] = [:]
      var states: [Revision: [RecordKey: Revision]] = [:]
      var replica: [RecordKey: Revision] = [:]
      let keyCount = random.int(1..<100)
      for commit in 1...random.int(2..<150) {
        let revision = Revision(UInt64(commit))
        for _ in 0..<random.int(1..<4) {
          let key = RecordKey("\(random.int(0..<keyCount))")
          let old = records[key]
          let isDeletion = random.chance(40)
          if isDeletion, old == nil { continue }
          let new = isDeletion ? nil : RecordSlot(key: key, revision: revision, schemaVersion: 1, value: .init())
          records[key] = new
          buffer.add(RecordChange(collection: 0, key: key, revision: revision, origin: .thisProcess, old: old, new: new))
        }
        states[revision] = records.mapValues(\.revision)
        try #require(buffer.count <= keyCount)
        while random.chance(15), let set = buffer.takeFirst() { try replay(set, to: &replica, states, seed) }
      }
      while let set = buffer.takeFirst() { try replay(set, to: &replica, states, seed) }
      try #require(buffer.isEmpty && replica == records.mapValues(\.revision), "replay with LARDER_SEED=\(seed)")
    }
  }

  private func replay(
    _ set: (revision: Revision, changes: [RecordChange]), to replica: inout [RecordKey: Revision],
    _ states: [Revision: [RecordKey: Revision]], _ seed: UInt64
  ) throws {
    for change in set.changes {
      try #require(replica[change.key] == change.old?.revision, "replay with LARDER_SEED=\(seed)")
      replica[change.key] = change.new?.revision
    }
    try #require(replica == states[set.revision], "at \(set.revision); replay with LARDER_SEED=\(seed)")
  }
}
