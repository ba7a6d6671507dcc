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

@Suite("A process that is killed", .serialized, .timeLimit(.minutes(Torture.isOn ? 60 : 4))) struct KillTests {
  /// The number of kills of each backend's writer; `LARDER_KILLS` sets another number than the usual or the full one.
  private var kills: Int { ProcessInfo.processInfo.environment["LARDER_KILLS"].flatMap(Int.init) ?? Torture.count(12, full: 200) }
  private var seed: UInt64 { ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max) }

  @Test(arguments: DiskBackend.allCases) func losesNothingThatWasAcknowledgedAndLeavesNothingHalf(_ kind: DiskBackend) async throws {
    let seed = seed
    print("LARDER_SEED=\(seed) (the kills' moments do not replay exactly)")
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("ledger.\(kind.rawValue)")
    var ledger = Ledger()

    for kill in 0..<kills {
      let writer = try WriterProcess("write", file.path, "\(random.next())", "\(ledger.lastStep + 1)")
      var linesLeft = Int(random.next() % 120)
      while linesLeft > 0, let line = writer.nextLine() {
        ledger.read(line)
        linesLeft -= 1
      }
      writer.kill()
      while let line = writer.nextLine() { ledger.read(line) }
      writer.waitUntilExit()
      try #require(ledger.failures.isEmpty, "kill \(kill): \(ledger.failures)")

      // Half of the times the next writer recovers by itself, and only a copy is looked at.
      let isCopy = random.next() % 2 == 0
      let examined = isCopy ? try directory.copy(except: file.lastPathComponent + "-lock") : directory
      let store = try await Store.open(kind.backend(examined.url.appendingPathComponent(file.lastPathComponent)))
      let entries = try await store.repository(RepositorySchema<Entry>("entries"))
      let found = Dictionary(try await entries.loadAll().map { ($0.id, $0.step) }, uniquingKeysWith: max)
      let problem = ledger.settle(with: found)
      try #require(problem == nil, "kill \(kill): \(problem ?? "")")
      let report = await store.verify()
      try #require(report.isSound, "kill \(kill): \(report.problems)")
      try await store.close()
    }
    print("\(kind): \(kills) kills, \(ledger.acknowledgedCount) acknowledged writes, none lost, none half there")
    #expect(ledger.acknowledgedCount > kills)
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
  @Test func anotherProcessIsRefusedAlsoWhenTheLockFileWasDeleted() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("held.json")
    let holder = try WriterProcess("hold", file.path)
    #expect(holder.nextLine() == "open")
    try FileManager.default.removeItem(at: URL(fileURLWithPath: file.path + "-lock"))
    let error = await #expect(throws: RepositoryError.self) {
      _ = try await LocalRepository<Entry>(backend: JSONFileBackend(file: file), schema: .init("entries"))
    }
    #expect(error?.code == .locked)
    holder.kill()
    holder.waitUntilExit()
    try await LocalRepository<Entry>(backend: JSONFileBackend(file: file), schema: .init("entries")).close()
  }
}
