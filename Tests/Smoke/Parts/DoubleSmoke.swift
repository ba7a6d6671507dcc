import Foundation
import Larder
import LarderTesting

enum DoubleSmoke {
  static func run(_ directory: URL) async throws {
    let clock = ManualClock(now: Date(timeIntervalSince1970: 0))
    async let slept: Void = clock.sleep(for: .seconds(1))
    await clock.waitForSleepers(1)
    try expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    try await slept
    clock.setWall(by: 5)
    try expect(clock.now == Date(timeIntervalSince1970: 6) && clock.uptime == .seconds(1))
    clock.setWall(to: .distantPast)

    let source = ScriptedSource<Int, Int> { key, _ in .value(key) }
    source.answer(1, .success(.value(7)))
    if case .value(let value, _, _) = try await source.fetch(1, validator: "v") { try expect(value == 7) }
    source.hold()
    let task = Task { try await source.fetch(2, validator: nil) }
    await source.waitForHeld(1)
    task.cancel()
    await source.waitForCancelled(1)
    source.release()
    _ = await task.result
    await source.waitForCalls(2)
    try expect(source.callCount == 2 && source.calls.map(\.key) == [1, 2] && source.calls[0].validator == "v")
    try expect(source.cancelledCount == 1 && source.mostAtOnce == 1)
    var random = SeededGenerator(seed: 1)
    var same = SeededGenerator(seed: 1)
    try expect(random.next() == same.next())
    try await faults()
    try conformance(directory)
  }

  private static func faults() async throws {
    let backend = FaultInjectingBackend(InMemoryBackend())
    let jars = try await LocalRepository<Jar>(backend: backend)
    backend.fail(.commit, call: 1, with: RepositoryError(.full), .before)
    try await expect(.full) { try await jars.save(.plum) }
    backend.hold(.commit)
    let task = Task { try await jars.save(.plum) }
    await backend.waitUntilHeld(.commit)
    backend.step(.commit)
    _ = await task.result
    backend.release(.commit)
    backend.setWantsCheckpoint(false)
    try expect(backend.calls(.commit) >= 1 && backend.batches.count >= 1 && !backend.wantsCheckpoint)
    try await jars.close()
    let operations: [FaultInjectingBackend.Operation] = [.backup, .checkpoint, .close, .flush, .open, .recover, .verify]
    try expect(operations.allSatisfy { backend.calls($0) >= 0 } && FaultInjectingBackend.Moment.after != .before)
  }

  private static func conformance(_ directory: URL) throws {
    let place: @Sendable () throws -> BackendPlace = {
      let backend = InMemoryBackend()
      return BackendPlace(file: nil, backup: nil, remove: {}, makeBackend: { backend })
    }
    let memory = BackendFactory(capabilities: [], place: place)
    let files = BackendFactory.file(named: "jars.json", capabilities: [.backup, .handles]) { JSONFileBackend(file: $0) }
    let made = try files.makePlace()
    try expect(made.file != nil && made.backup.map { $0.file.path.isEmpty } == false && memory.capabilities.isEmpty)
    _ = try made.makeBackend()
    _ = try made.backup?.makeBackend()
    made.remove()
    _ = BackendPlace.Backup(file: directory) { InMemoryBackend() }
    try expect(BackendCapability.sharing.description != BackendCapability.handles.description)
    guard let rule = BackendRequirement.all.first(where: { $0.applies(to: memory) }) else {
      throw SmokeFailure(description: "expected a rule")
    }
    try rule.check(files)
    try expect(!rule.name.isEmpty && !rule.rule.isEmpty && !rule.description.isEmpty && rule == rule && Set([rule]).count == 1)
    do {
      try rule.check(BackendFactory(capabilities: []) { throw SmokeFailure(description: "no place") })
      throw SmokeFailure(description: "expected a failure")
    } catch let failure as ConformanceFailure {
      try expect(
        failure.requirement == rule && !failure.seen.isEmpty && !failure.description.isEmpty && (failure.underlying != nil || true))
    }
  }
}
