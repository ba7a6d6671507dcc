import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Random sequences of operations by one task, against a dictionary that does the same.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct ModelTests {
  private struct Stop: Error {}

  @Test(arguments: TestBackend.allCases)
  func aRepositoryDoesWhatADictionaryDoes(_ backend: TestBackend) async throws {
    var count = 0
    for seed in Seeds.list(backend == .memory ? Torture.count(100, full: 5_000) : Torture.count(7, full: 200), for: "model on \(backend)") {
      do {
        try await run(seed, on: backend)
        count += 100
      } catch {
        Issue.record("\(error); replay with LARDER_SEED=\(seed)")
        return
      }
    }
    print("figures: model operations \(count), differences 0, one repository on \(backend)")
  }

  private func run(_ seed: UInt64, on backend: TestBackend) async throws {
    let place = try backend.factory.makePlace()
    defer { place.remove() }
    var random = SeededGenerator(seed)
    let options = StoreOptions(durability: random.chance(10) ? .durable : .buffered, checkpoint: .manual)  // a sync takes time
    var repository = try await LocalRepository<Register>(backend: try place.makeBackend(), options: options)
    var model: [Int: Int] = [:]
    var revision = UInt64(0)
    for step in 0..<100 {
      let key = random.int(0..<12)
      switch random.int(0..<100) {
      case 0..<25:
        revision += 1
        model[key] = step
        let saved = try await repository.save(Register(id: key, value: step))
        try expect(saved.number == revision, step, "save gave revision \(saved), not \(revision)")
      case 25..<35:
        let keys = (0..<random.int(0..<6)).map { _ in random.int(0..<12) }
        let items = keys.enumerated().map { Register(id: $1, value: step * 100 + $0) }
        revision += items.isEmpty ? 0 : 1
        for item in items { model[item.id] = item.value }
        let saved = try await repository.save(contentsOf: items)
        try expect(saved.number == revision, step, "save(contentsOf:) gave revision \(saved), not \(revision)")
      case 35..<45:
        let result = await code { try await repository.insert(Register(id: key, value: step)) }
        try expect(result == (model[key] == nil ? nil : .alreadyExists), step, "insert ended with \(String(describing: result))")
        if model[key] == nil {
          model[key] = step
          revision += 1
        }
      case 45..<55:
        let result = await code { try await repository.update(key) { $0.value += 1 } }
        try expect(result == (model[key] == nil ? .notFound : nil), step, "update ended with \(String(describing: result))")
        if let value = model[key] {
          model[key] = value + 1
          revision += 1
        }
      case 55..<67:
        let wasThere = try await repository.delete(key)
        try expect(wasThere == (model.removeValue(forKey: key) != nil), step, "delete returned \(wasThere)")
        revision += wasThere ? 1 : 0
      case 67..<71:
        let kept = (0..<random.int(0..<8)).map { Register(id: $0, value: step) }
        revision += model.isEmpty && kept.isEmpty ? 0 : 1
        model = Dictionary(kept.map { ($0.id, $0.value) }) { $1 }
        try await repository.replaceAll(with: kept)
      case 71..<81:
        let fails = random.chance(40)
        let other = random.int(0..<12)
        let result = try await transaction(key, other, step, fails, in: repository)
        try expect(result == (fails ? nil : model.count + (model[key] == nil ? 1 : 0)), step, "the transaction counted \(result ?? -1)")
        if !fails {
          model[key] = step
          model[other] = nil
          revision += 1
        }
      case 81..<87:
        let stale = await code { try await repository.save(Register(id: key, value: step), ifRevision: Revision(revision + 1)) }
        try expect(stale == .revisionMismatch, step, "compare-and-set on a revision to come ended with \(String(describing: stale))")
        let current = repository.revision(of: key)
        try expect((current == nil) == (model[key] == nil), step, "revision(of:) is \(String(describing: current))")
        try await repository.save(Register(id: key, value: step), ifRevision: current ?? .zero)
        model[key] = step
        revision += 1
      case 87..<92:
        try await repository.checkpoint()
      default:
        try await repository.close()
        repository = try await LocalRepository<Register>(backend: try place.makeBackend(), options: options)
        try expect(repository.openReport.commit.number == revision, step, "reopened at \(repository.openReport.commit)")
      }
      try await compare(repository, model, revision, step, everything: step.isMultiple(of: 10), key)
    }
    try await repository.close()
  }

  /// Saves one record and deletes another, seeing its own writes; throws at the end if told so, and then returns `nil`.
  private func transaction(
    _ saved: Int, _ deleted: Int, _ value: Int, _ fails: Bool, in repository: LocalRepository<Register>
  ) async throws -> Int? {
    do {
      return try await repository.transaction { transaction in
        try transaction.save(Register(id: saved, value: value), in: repository)
        let count = try transaction.count(in: repository)
        try transaction.delete(deleted, in: repository)
        guard try transaction.find(by: deleted, in: repository) == nil else { throw Mismatch(text: "a transaction finds what it deleted") }
        if fails { throw Stop() }
        return count
      }
    } catch is Stop {
      return nil
    }
  }

  private func compare(
    _ repository: LocalRepository<Register>, _ model: [Int: Int], _ revision: UInt64, _ step: Int, everything: Bool, _ key: Int
  ) async throws {
    let found = try await repository.find(by: key)
    try expect(found?.value == model[key], step, "key \(key) holds \(String(describing: found?.value))")
    let count = try await repository.count()
    try expect(count == model.count, step, "\(count) records instead of \(model.count)")
    try expect(repository.snapshot.revision.number == revision, step, "commit \(repository.snapshot.revision), not \(revision)")
    guard everything else { return }
    let all = try await repository.loadAll()
    let wanted = model.sorted { String($0.key) < String($1.key) }.map { Register(id: $0.key, value: $0.value) }
    try expect(all == wanted, step, "loadAll differs, or is not in the order of the keys' bytes")
  }

  private struct Mismatch: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
  }

  private func expect(_ condition: Bool, _ step: Int, _ seen: @autoclosure () -> String) throws {
    if !condition { throw Mismatch(text: "step \(step): \(seen())") }
  }
}
