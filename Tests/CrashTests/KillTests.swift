import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// A disk backend under test, named by the extension of its file.
enum DiskBackend: String, CaseIterable, Sendable {
  case json, sqlite

  func backend(_ file: URL) -> any StorageBackend {
    switch self {
    case .json: JSONFileBackend(file: file)
    case .sqlite: SQLiteBackend(file: file)
    }
  }
}

struct Entry: Codable, Identifiable, Sendable {
  let id: String
  var step: Int
  var padding: String
}

@Suite("A process that is killed", .serialized, .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct KillTests {
  @Test(arguments: DiskBackend.allCases, KillRow.ofOneWriter)
  func losesNothingThatWasAcknowledgedAndLeavesNothingHalf(_ kind: DiskBackend, _ row: KillRow) async throws {
    let figures = try await row.run(kind, KillRow.seed()) { kills, seed in try await lane(kind, row, kills, seed) }
    #expect(figures.amid > 0)
  }

  /// Kills one writer after the other on one store, and looks at what each has left.
  private func lane(_ kind: DiskBackend, _ row: KillRow, _ kills: Int, _ seed: UInt64) async throws -> KillFigures {
    var random = SeededGenerator(seed)
    let directory = try TemporaryDirectory(inMemory: Torture.isOn)
    let file = directory.file("ledger.\(kind.rawValue)")
    var ledger = Ledger()
    var figures = KillFigures()

    // Where the kills fall depends on the machine: it goes on until one has fallen amid a step.
    while figures.kills < kills || (figures.amid == 0 && figures.kills < 20 * kills) {
      let kill = figures.kills + 1
      let (writerSeed, step) = ("\(random.next())", "\(ledger.lastStep + 1)")
      // While it opens the store, soon after that, or after a while.
      let count = [1, random.int(2..<12), random.int(2..<100)][random.int(0..<3)]
      let beginning = row == .checkpoint && count > 1 ? "begin 4" : ""
      let pause = Duration.microseconds(random.int(0..<3_000))
      let lines = try await DispatchQueue.global().run {
        Result {
          try WriterProcess("write", file.path, writerSeed, step, row.rawValue)
            .linesUntilKilled(after: count, beginning: beginning, and: pause)
        }
      }.get()
      for line in lines { ledger.read(line) }
      try #require(ledger.failures.isEmpty, "kill \(kill) of LARDER_SEED=\(seed): \(ledger.failures)")
      figures.kills += 1
      if ledger.isAmid(row == .checkpoint ? 4..<5 : 0..<4) { figures.amid += 1 }

      // Half of the times the next writer recovers by itself, and only a copy is looked at.
      let examined = random.chance(50) ? try directory.copy(except: file.lastPathComponent + "-lock") : directory
      let residency: Residency = random.chance(50) ? .onDisk(cache: .bytes(10_000)) : .full
      let store = try await Store.open(kind.backend(examined.file(file.lastPathComponent)), options: StoreOptions(residency: residency))
      let problem = try await ledger.problem(of: store)
      try #require(problem == nil, "kill \(kill) of LARDER_SEED=\(seed): \(problem ?? "")")
      let remains = try await Remains(of: store, file: file.lastPathComponent, in: examined, kind: kind)
      try #require(remains.problems.isEmpty, "kill \(kill) of LARDER_SEED=\(seed): \(remains.problems)")
      try await store.close()
    }
    figures.acknowledged = ledger.acknowledgedCount
    return figures
  }

  @Test(arguments: DiskBackend.allCases) func aSecondProcessIsRefusedAtOnceAndTheFirstIsUndisturbed(_ kind: DiskBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("held.\(kind.rawValue)")
    let entries = try await LocalRepository<Entry>(backend: kind.backend(file), schema: .init("entries"))
    try await entries.save(Entry(id: "mine", step: 1, padding: ""))
    let second = try WriterProcess("hold", file.path)
    #expect(second.nextLine() == "refused locked")
    second.waitUntilExit()
    try await entries.save(Entry(id: "mine", step: 2, padding: ""))
    #expect(try await entries.find(by: "mine")?.step == 2)
    try await entries.close()

    let holder = try WriterProcess("hold", file.path)
    #expect(holder.nextLine() == "open")
    let error = await #expect(throws: RepositoryError.self) {
      _ = try await LocalRepository<Entry>(backend: kind.backend(file), schema: .init("entries"))
    }
    #expect(error?.code == .locked)
    holder.kill()
    holder.waitUntilExit()
    let reopened = try await LocalRepository<Entry>(backend: kind.backend(file), schema: .init("entries"))
    #expect(try await reopened.find(by: "mine")?.step == 2)
    try await reopened.close()
  }
}

extension KillTests {
  /// The file itself is locked, not only its name.
  @Test(arguments: DiskBackend.allCases) func anotherProcessIsRefusedAlsoWhenTheLockFileWasDeleted(_ kind: DiskBackend) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("held.\(kind.rawValue)")
    let holder = try WriterProcess("hold", file.path)
    #expect(holder.nextLine() == "open")
    try FileManager.default.removeItem(at: URL(fileURLWithPath: file.path + "-lock"))
    let error = await #expect(throws: RepositoryError.self) {
      _ = try await LocalRepository<Entry>(backend: kind.backend(file), schema: .init("entries"))
    }
    #expect(error?.code == .locked)
    holder.kill()
    holder.waitUntilExit()
    try await LocalRepository<Entry>(backend: kind.backend(file), schema: .init("entries")).close()
  }
}
