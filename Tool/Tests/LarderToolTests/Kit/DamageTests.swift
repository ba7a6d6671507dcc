import Foundation
import Larder
import LarderTesting
import LarderToolKit
import Testing

/// Damaged stores: no trap, no change to what is read, and never "sound" for records that are not those that were there.
@Suite(.timeLimit(.minutes(15))) struct DamageTests {
  @Test(arguments: Fixtures.mainFiles) func `damage is found, and nothing is changed`(fixture: URL) throws {
    let workspace = try Workspace()
    let store = try Fixtures.copy(fixture, to: workspace)
    let original = try StoreReading(path: store).records.map(Summary.init)
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).sorted()
    var generator = Sampling.generator(for: "damage of \(fixture.lastPathComponent)")
    // A large store takes long to read.
    let size = try names.reduce(0) { $0 + (try Data(contentsOf: workspace.url($1)).count) }
    let trial = try ToolTrial(store, in: workspace)
    for round in 0..<Sampling.count(40, full: size > 1 << 17 ? 200 : 2_000) {
      let name = names[Int.random(in: names.indices, using: &generator)]
      let whole = try Data(contentsOf: workspace.url(name))
      guard !whole.isEmpty else { continue }
      let damage = Damage.random(whole.count, &generator)
      try damage.applied(to: whole).write(to: workspace.url(name))
      let before = try DirectoryState(workspace)
      let context = Comment("\(name): \(damage)")

      let verdict = StoreVerdict(ofStoreAt: store)
      _ = (verdict.lines(width: nil), verdict.json)
      let summary = result { () throws(RepositoryError) in SummaryAnswer(try StoreSummary(path: store)) }
      _ = (summary?.lines(width: 80), summary?.json)
      let history = result { () throws(RepositoryError) in try StoreHistory(StoreFile(path: store), limit: 100) }
      _ = (history?.table.lines(width: 80), history?.jsonLines)
      let reading = result { () throws(RepositoryError) in try StoreReading(path: store) }
      if let reading {
        let dump = result { () throws(RepositoryError) in try StoreDump(reading, hasTombstones: true) }
        _ = dump?.records.map(\.line)
      }
      if verdict.status == .success, verdict.endsWhole {
        // A log or journal that is gone as a whole leaves an older store.
        if name == URL(filePath: store).lastPathComponent { #expect(reading?.records.map(Summary.init) == original, context) }
        #expect(reading != nil, context)
      }
      #expect(try DirectoryState(workspace) == before, context)
      // A store that is written costs more than all readings.
      if round % 10 == 0 { try trial.run([TriedCommand.writing[round / 10 % TriedCommand.writing.count], .repair], "\(name): \(damage)") }
      try whole.write(to: workspace.url(name))
    }
  }

  /// The parts of a record that damage could change.
  private struct Summary: Equatable {
    let address: RecordAddress
    let revision: Revision
    let version: Int
    let value: Data?

    init(_ record: StoredRecord) {
      (address, revision, version, value) = (record.address, record.revision, record.schemaVersion, record.value)
    }
  }

  private func result<Value>(_ body: () throws(RepositoryError) -> Value) -> Value? {
    do throws(RepositoryError) { return try body() } catch { return nil }
  }

  @Test func `a damaged store has an exit code of the list`() async throws {
    var generator = Sampling.generator(for: "damage and the built tool")
    for _ in 0..<Sampling.count(30, full: 300) {
      let workspace = try Workspace()
      let fixture = Fixtures.mainFiles[Int.random(in: Fixtures.mainFiles.indices, using: &generator)]
      let store = try Fixtures.copy(fixture, to: workspace)
      let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).sorted()
      let name = names[Int.random(in: names.indices, using: &generator)]
      let whole = try Data(contentsOf: workspace.url(name))
      let damage = Damage.random(max(1, whole.count), &generator)
      try damage.applied(to: whole).write(to: workspace.url(name))
      let before = try DirectoryState(workspace)
      let commands = [
        ["verify", store], ["inspect", store], ["get", store, "spots", "1"], ["query", store, "spots"], ["dump", store],
        ["history", store],
        ["diff", store, fixture.path],
      ]
      let writing = TriedCommand.writing
      guard let command = commands.randomElement(using: &generator), Bool.random(using: &generator) else {
        let command = writing[Int.random(in: writing.indices, using: &generator)]
        try await ToolTrial(store, in: workspace).runBuilt(command, "\(name) with \(damage)")
        continue
      }
      let run = try await larder(command)
      #expect([0, 1, 2].contains(run.code), "\(command) on \(name) with \(damage): \(run.errors)")
      #expect(try DirectoryState(workspace) == before, "\(command) on \(name) with \(damage)")
    }
  }

  @Test func `the index that a killed process has left stays as it is`() throws {
    let fixture = try #require(Fixtures.mainFiles.first { $0.lastPathComponent == "crashed.sqlite" })
    let workspace = try Workspace()
    let store = try Fixtures.copy(fixture, to: workspace)
    let count = try StoreReading(path: store).records.count
    for index in [Data(), Data(count: 3), Data(count: 32_768), Data((0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* 7) })] {
      try index.write(to: workspace.url("crashed.sqlite-shm"))
      let before = try DirectoryState(workspace)
      #expect(try StoreReading(path: store).records.count == count)
      #expect(StoreVerdict(ofStoreAt: store).status == .success)
      #expect(try DirectoryState(workspace) == before)
    }
  }

  @Test func `damage that only SQLite's own check finds is found`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.sqliteFile)
    var bytes = try Data(contentsOf: URL(filePath: store))
    // The number of free pages, which reading rows does not look at.
    bytes[39] = 5
    try bytes.write(to: URL(filePath: store))
    #expect(try StoreReading(path: store).records.count == 3)
    #expect(StoreVerdict(ofStoreAt: store).status == .negative)
  }

  @Test func `damage in a log before a later commit is found, though SQLite ignores it`() throws {
    let fixture = try #require(Fixtures.mainFiles.first { $0.lastPathComponent == "crashed.sqlite" })
    let workspace = try Workspace()
    let store = try Fixtures.copy(fixture, to: workspace)
    var log = try Data(contentsOf: workspace.url("crashed.sqlite-wal"))
    log[100] ^= 1
    try log.write(to: workspace.url("crashed.sqlite-wal"))
    #expect(StoreVerdict(ofStoreAt: store).status == .negative)
  }
}
