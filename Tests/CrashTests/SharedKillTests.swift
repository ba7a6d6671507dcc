import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// Kills of processes that write one SQLite store with others; a JSON file has one writer.
@Suite("A process that shares a store and is killed", .serialized, .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct SharedKillTests {
  @Test func losesNothingAndTheOtherProcessGoesOn() async throws {
    let figures = try await KillRow.shared.run(.sqlite, KillRow.seed()) { kills, seed in try await lane(kills, seed) }
    #expect(figures.amid > 0)
  }

  /// Has two processes write, and kills one or both: where one is left, it must go on, and this process writes beside it.
  private func lane(_ kills: Int, _ seed: UInt64) async throws -> KillFigures {
    let directory = try TemporaryDirectory(inMemory: Torture.isOn)
    let file = directory.file("ledger.sqlite")
    let round = SharedRound(file: file, seed: seed)
    while round.figures.kills < kills || (round.figures.amid == 0 && round.figures.kills < 20 * kills) {
      let name = "kill \(round.figures.kills + 1) of LARDER_SEED=\(seed)"
      let (gone, failures) = try await DispatchQueue.global().run { Result { try round.kill() } }.get()
      try #require(failures.isEmpty, "\(name): \(failures)")
      var ledger = round.ledger
      let isAlone = gone.count == 5
      let store = try await Store.open(SQLiteBackend(file: file), options: .init(access: isAlone ? .exclusive : .shared))
      let problem = try await ledger.problem(of: store, tasks: gone)
      try #require(problem == nil, "\(name): \(problem ?? "")")
      round.settled(ledger)
      // A lock that the killed process left behind would keep this one waiting.
      let entries = try await store.repository(RepositorySchema<Entry>("entries"))
      try await entries.save(Entry(id: "parent", step: round.figures.kills, padding: ""))
      try await store.close()
    }
    await DispatchQueue.global().run { round.end() }
    return round.figures
  }
}
