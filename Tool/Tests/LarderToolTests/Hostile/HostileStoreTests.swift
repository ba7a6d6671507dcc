import Foundation
import LarderTesting
import LarderToolKit
import Testing

/// The tool on stores that were made to do harm: an answer or a refusal, nothing changed, and nothing left behind.
@Suite(.timeLimit(.minutes(15))) struct HostileStoreTests {
  private static let isTorture = Sampling.count(0, full: 1) == 1

  private func tryEach(_ stores: [HostileStore]) throws {
    for hostile in stores {
      let (store, folder) = try hostile.place()
      try ToolTrial(store, in: folder).run(TriedCommand.allCases, hostile.description)
    }
  }

  /// Returns some of many, or all with `LARDER_TORTURE`.
  private func some(_ stores: [HostileStore], _ count: Int, _ test: String) -> [HostileStore] {
    var generator = Sampling.generator(for: test)
    return Array(stores.shuffled(using: &generator).prefix(Sampling.count(count, full: .max)))
  }

  @Test func everyInputThatFuzzingKeepsIsReadOrRefused() throws {
    let stores = try HostileStore.corpora()
    #expect(stores.count >= 75)
    try tryEach(stores)
  }

  @Test func aPreparedDatabaseIsReadOrRefused() async throws {
    try tryEach(some(try await HostileStore.databases(), 15, "prepared databases"))
  }

  @Test func aJSONBombIsRefused() throws {
    try tryEach(some(HostileStore.bombs(size: Sampling.count(20_000, full: 1_000_000)), 15, "JSON bombs"))
  }

  @Test func theBuiltToolEndsWithACodeOfTheList() async throws {
    let stores = some(
      try HostileStore.corpora() + (await HostileStore.databases()) + HostileStore.bombs(size: 100_000), 12, "hostile stores")
    for (number, hostile) in stores.enumerated() {
      let commands = Self.isTorture ? TriedCommand.allCases : [TriedCommand.allCases[number % TriedCommand.allCases.count]]
      let (store, folder) = try hostile.place()
      for command in commands { try await ToolTrial(store, in: folder).runBuilt(command, hostile.description) }
    }
  }

  /// A pipe waits for a writer who never comes, and what a link leads to is not the store's.
  @Test(arguments: StoreKind.allCases, ["", "-journal", "-wal", "-lock", "-shm"])
  func whatIsNoFileIsNeitherWaitedForNorFollowed(_ kind: StoreKind, _ ending: String) async throws {
    for make in [{ mkfifo($0, 0o600) }, { mkdir($0, 0o700) }, { symlink("/dev/zero", $0) }] as [(String) -> Int32] {
      let workspace = try Workspace()
      let store = try await workspace.store(kind)
      // SQLite keeps nothing beside a database that was closed, and a JSON file its lock.
      if FileManager.default.fileExists(atPath: store + ending) { try FileManager.default.removeItem(atPath: store + ending) }
      try #require(make(store + ending) == 0)
      try ToolTrial(store, in: workspace).run(TriedCommand.allCases, "\(kind)\(ending)")
    }
  }
}
