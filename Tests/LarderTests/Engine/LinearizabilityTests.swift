import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct LinearizabilityTests {
  @Test(arguments: [(TestBackend.memory, 70, 7_000), (.json, 27, 2_500), (.sqlite, 9, 1_000)])
  func everyHistoryOfARepositoryIsLinearizable(_ backend: TestBackend, _ usual: Int, _ full: Int) async throws {
    let count = Torture.count(usual, full: full)
    let clock = ContinuousClock.now
    let seeds = Seeds.list(count, for: "linearizability on \(backend)")
    for seed in seeds {
      guard try await isExplained(seed, on: backend) else { return }
    }
    print("figures: histories \(seeds.count), not linearizable 0, \(backend) in \(clock.duration(to: .now))")
  }

  /// Runs the history of a seed; `false`, and an issue recorded, when no order explains it.
  private func isExplained(_ seed: UInt64, on backend: TestBackend) async throws -> Bool {
    let run = HistoryRun(seed: seed, operations: seed.isMultiple(of: 4) ? 200 : 80)
    var random = SeededGenerator(seed ^ 0xD15C)
    let (memory, files, directory) = (InMemoryBackend(), SimulatedFileSystem(), try TemporaryDirectory(inMemory: true))
    let makeBackend = { () -> any StorageBackend in
      switch backend {
      case .memory: memory
      case .json: JSONFileBackend(file: URL(filePath: "/registers.json"), fileSystem: files)
      default: backend.backend(directory.file("registers.sqlite"))
      }
    }
    let disk = FaultInjectingBackend(makeBackend())
    let options = StoreOptions(checkpoint: .manual)
    let subject = RepositoryRegisters(try await LocalRepository<Register>(backend: disk, options: options), keys: run.keys)
    for _ in 0..<random.int(0..<4) { disk.fail(.commit, call: random.int(1..<60), with: RepositoryError(.inputOutput)) }
    if random.chance(30) {
      disk.fail(.commit, call: random.int(5..<50), with: RepositoryError(.outcomeUnknown), random.chance(50) ? .before : .after)
    }
    let isSlow = random.chance(60)
    let isOver = Flag()
    async let pauses: Void = {
      while isSlow, !isOver.isSet {
        disk.hold(.commit)
        for _ in 0..<20 { await Task.yield() }
        disk.release(.commit)
        await Task.yield()
      }
    }()
    await run.run(on: subject)
    isOver.set()
    await pauses
    await run.readAll(from: subject)
    try await subject.registers.close()
    let reopened = RepositoryRegisters(try await LocalRepository<Register>(backend: makeBackend(), options: options), keys: run.keys)
    await run.readAll(from: reopened)
    try await reopened.registers.close()
    let violations = run.recorder.violations()
    #expect(violations.isEmpty, "keys \(violations); replay with LARDER_SEED=\(seed)")
    let isWhole = try Self.commits(of: disk, show: subject.sightings)
    #expect(isWhole, "no commit shows what was seen; replay with LARDER_SEED=\(seed)")
    return violations.isEmpty && isWhole
  }

  /// Whether the commits leave what was seen at them: transactions and snapshots are whole, over all their keys.
  private static func commits(
    of disk: FaultInjectingBackend, show sightings: [RepositoryRegisters.Sighting]
  ) throws -> Bool {
    var records = disk.batches.flatMap(\.records)[...]
    var state: [Int: Int] = [:]
    for sighting in sightings.sorted(by: { $0.revision < $1.revision }) {
      while let record = records.first, record.revision.number <= sighting.revision {
        let key = try #require(Int(record.key.text))
        state[key] = try record.value.map { try JSONDecoder().decode(Register.self, from: $0).value }
        records.removeFirst()
      }
      guard sighting.state.allSatisfy({ state[$0.key] == $0.value }) else { return false }
    }
    return true
  }

  // MARK: Teeth

  @Test func readAwaitAssignIsFlagged() async {
    var flagged = 0
    for seed in Seeds.list(20, for: "lost updates") {
      let run = HistoryRun(seed: seed)
      let subject = LostUpdateRegisters()
      await run.run(on: subject)
      await run.readAll(from: subject)
      flagged += run.recorder.violations().isEmpty ? 0 : 1
    }
    #expect(flagged > 0)
  }

  @Test func memoryThatKeepsWhatTheDiskRefusedIsFlagged() async {
    // A schedule without overlap shows nothing, so not every history must be flagged.
    var flagged = 0
    for seed in Seeds.list(5, for: "refused writes") {
      let run = HistoryRun(seed: seed)
      await run.run(on: EarlyRegisters())
      if !run.recorder.violations().isEmpty { flagged += 1 }
    }
    #expect(flagged >= 1)
  }

  @Test func theCheckerKnowsWhatIsLinearizable() {
    func event(_ operation: RegisterOperation, _ invoked: Int, _ returned: Int?) -> HistoryEvent {
      HistoryEvent(operation: operation, invoked: invoked, returned: returned)
    }
    let accepted: [[HistoryEvent]] = [
      [],
      [event(.write(1), 1, 2), event(.read(1), 3, 4)],
      [event(.write(1), 1, 10), event(.read(nil), 2, 3), event(.read(1), 4, 5)],
      [event(.write(1), 1, 4), event(.write(2), 2, 3), event(.read(1), 5, 6)],
      [event(.write(1), 1, nil), event(.read(nil), 2, 3), event(.read(1), 4, 5)],
      [event(.write(1), 1, nil), event(.read(nil), 2, 3)],
      [event(.exchange(nil, 1), 1, 6), event(.exchange(1, 2), 2, 5), event(.read(2), 7, 8)],
    ]
    let refused: [[HistoryEvent]] = [
      [event(.read(1), 1, 2)],
      [event(.write(1), 1, 2), event(.read(nil), 3, 4)],
      [event(.write(1), 1, 10), event(.read(1), 2, 3), event(.read(nil), 4, 5)],
      [event(.write(1), 1, 2), event(.write(2), 3, 4), event(.read(1), 5, 6)],
      [event(.write(1), 1, nil), event(.read(1), 2, 3), event(.read(nil), 4, 5)],
      [event(.exchange(nil, 1), 1, 6), event(.exchange(nil, 2), 2, 5)],
      [event(.write(1), 3, nil), event(.read(1), 1, 2)],
      [event(.write(1), 1, 2), event(RegisterOperation(condition: .differs(from: 1)), 3, 4)],
    ]
    for history in accepted { #expect(RegisterChecker.isLinearizable(history)) }
    for history in refused { #expect(!RegisterChecker.isLinearizable(history)) }
  }
}
