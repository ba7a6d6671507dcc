import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderToolKit

@Suite struct RepairTests {
  private static let isTorture = ProcessInfo.processInfo.environment["LARDER_TORTURE"] != nil

  /// Returns the seeds of a random test, or the one of `LARDER_SEED`.
  private static func seeds(_ usual: Int, full: Int, _ name: String) -> [UInt64] {
    if let text = ProcessInfo.processInfo.environment["LARDER_SEED"], let seed = UInt64(text) { return [seed] }
    var random = SeededGenerator(seed: .random(in: .min ... .max))
    let seeds = (0..<(isTorture ? full : usual)).map { _ in random.next() }
    print("\(name): the first of \(seeds.count) seeds is LARDER_SEED=\(seeds[0])")
    return seeds
  }

  @Test(arguments: StoreKind.allCases, [true, false]) func `an intact store is saved whole`(kind: StoreKind, isClosed: Bool) throws {
    for seed in Self.seeds(4, full: 50, "an intact store is saved whole") {
      var random = SeededGenerator(seed: seed)
      let workspace = try Workspace()
      let sample = try SampleStore(kind, in: workspace, isClosed: isClosed, &random)
      let before = try sample.bytes()
      let target = try StoreFile(newAt: workspace.path("new.\(kind.rawValue)"))
      let repair = try Repair(of: sample.file, to: target)
      #expect(repair.status == .success, "seed \(seed): \(repair.lines(width: nil))")
      let saved = try StoreReading(target)
      #expect(saved.report.commit.number == sample.commit)
      #expect(saved.records.count == sample.newest.count, "seed \(seed)")
      for record in saved.records { #expect(sample.newest[record.address]?.equals(record) == true, "seed \(seed)") }
      #expect(try sample.bytes() == before)
    }
  }

  @Test(arguments: StoreKind.allCases, Injury.allCases)
  func `what is intact is saved, and nothing that was never written`(kind: StoreKind, damage: Injury) throws {
    for seed in Self.seeds(8, full: 400, "what is intact is saved (\(kind), \(damage))") {
      var random = SeededGenerator(seed: seed)
      let workspace = try Workspace()
      let sample = try SampleStore(kind, in: workspace, isClosed: Bool.random(using: &random), &random)
      let before = try sample.bytes()
      var after = before
      let ending = try #require(before.keys.sorted().randomElement(using: &random))
      var bytes = try #require(before[ending])
      let damaged = damage.apply(to: &bytes, &random)
      after[ending] = bytes
      try sample.write(bytes, ending)

      var options = Repair.Options()
      (options.takesAnyJournal, options.collections) = (true, ["boats", "spots"])
      options.isDry = true
      let target = try StoreFile(newAt: workspace.path("new.\(kind.rawValue)"))
      guard let repair = try Self.attempt(sample.file.path, to: target, options) else { continue }
      let saved = Dictionary(repair.contents.records.map { ($0.address, $0) }) { $1 }
      let context: Comment = "seed \(seed), \(ending.isEmpty ? "main file" : ending) at \(damaged), \(repair.lines(width: nil))"
      for record in saved.values { #expect(sample.history.contains { $0.equals(record) }, context) }
      // Zeros over the end of a journal are what a write looks like that was never finished, and never acknowledged.
      let unfinished = repair.salvage.problems.first { !$0.isLoss && $0.reason.contains("never finished") && $0.file.hasSuffix("-journal") }
      let journal = Data(before["-journal"] ?? [])
      let isUnfinished = { (record: StoredRecord) in
        guard damage == .zeros, let offset = unfinished?.offset, let place = record.value.flatMap({ journal.firstRange(of: $0) }) else {
          return false
        }
        return place.lowerBound >= offset
      }
      for record in sample.newest.values
      where record.value != nil && !isUnfinished(record) && Self.isIntact(record, sample, before, ending, damaged) {
        let isSaved = saved[record.address].map { $0.revision >= record.revision } == true
        #expect(isSaved, context)
      }
      if !repair.salvage.hasLosses {
        for record in sample.newest.values where record.value != nil && !isUnfinished(record) {
          let isSaved = saved[record.address].map { $0.equals(record) } == true
          #expect(isSaved, context)
        }
      }
      #expect(try sample.bytes() == after)
    }
  }

  /// Repairs a store; `nil` where damage has made it one of a newer format, or a file that cannot be recognised.
  private static func attempt(_ path: String, to target: StoreFile, _ options: Repair.Options) throws -> Repair? {
    do throws(RepositoryError) {
      return try Repair(of: StoreFile(path: path), to: target, options)
    } catch {
      guard error.code == .newerSchema || error.code == .notOurStore else { throw error }
      return nil
    }
  }

  /// Whether the bytes of a record lie outside of the damage: its line, its operation in a frame, or its whole page.
  private static func isIntact(
    _ record: StoredRecord, _ sample: SampleStore, _ bytes: [String: [UInt8]], _ ending: String, _ damaged: [Range<Int>]
  ) -> Bool {
    guard let value = record.value, value.count < 400 else { return false }
    if ending == "-wal" { return false }
    for (name, contents) in bytes where name != "-wal" {
      guard let at = Data(contents).firstRange(of: value) else { continue }
      let range: Range<Int>
      switch (sample.file.kind, name) {
      case (.jsonFile, ""):
        let start = contents[..<at.lowerBound].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        range = start..<(at.upperBound + 1)
      case (.jsonFile, _): range = (at.lowerBound - 32 - record.collection.utf8.count - record.key.byteCount)..<at.upperBound
      default: range = (at.lowerBound / 4_096 * 4_096)..<(at.lowerBound / 4_096 * 4_096 + 4_096)
      }
      // The first page is that of the schema, without which no collection is known where none is named.
      if name == ending && damaged.contains(where: { $0.overlaps(range) }) { continue }
      return true
    }
    return false
  }

  @Test func `a journal of another store is left out, unless any is taken`() throws {
    var random = SeededGenerator(seed: 13)
    let workspace = try Workspace()
    let sample = try SampleStore(.jsonFile, in: workspace, isClosed: false, &random)
    let other = try SampleStore(.jsonFile, in: workspace, named: "other", commits: 3, isClosed: true, &random)
    try sample.write(try #require(try other.bytes()[""]), "")
    var options = Repair.Options()
    options.isDry = true
    let target = try StoreFile(newAt: workspace.path("new.json"))
    let repair = try Repair(of: sample.file, to: target, options)
    #expect(repair.status == .negative && repair.lines(width: nil)[0].contains("belongs to another store"))
    #expect(repair.contents.records.allSatisfy { record in other.history.contains { $0.equals(record) } })
    options.takesAnyJournal = true
    #expect(try Repair(of: sample.file, to: target, options).contents.commit == sample.commit)
  }

  @Test func `a journal alone gives what it holds`() throws {
    var random = SeededGenerator(seed: 17)
    let workspace = try Workspace()
    let sample = try SampleStore(.jsonFile, in: workspace, isClosed: false, &random)
    try FileManager.default.removeItem(atPath: sample.file.path)
    let repair = try Repair(of: StoreFile(path: sample.file.path), to: StoreFile(newAt: workspace.path("new.sqlite")))
    #expect(repair.status == .negative && repair.contents.commit == sample.commit)
    for record in repair.contents.records { #expect(sample.newest[record.address].map { $0.equals(record) } == true) }
  }

  /// Extensions of SQLite for encryption or checksums reserve bytes in each page.
  @Test(arguments: [12, 255]) func `a database with reserved bytes in its pages is saved whole`(count: Int32) throws {
    var random = SeededGenerator(seed: 19)
    let workspace = try Workspace()
    let sample = try SampleStore(.sqliteFile, in: workspace, commits: 200, isClosed: true, &random)
    try ReservedBytes.reserve(count, in: sample.file.path)
    #expect(try sample.bytes()[""]?[20] == UInt8(count))
    let repair = try Repair(of: sample.file, to: StoreFile(newAt: workspace.path("new.json")))
    #expect(repair.status == .success, "\(repair.lines(width: nil))")
    #expect(repair.contents.records.count == sample.newest.count)
    for record in repair.contents.records { #expect(sample.newest[record.address].map { $0.equals(record) } == true) }
  }

  @Test func `a damaged number of reserved bytes loses no record`() throws {
    var random = SeededGenerator(seed: 23)
    let workspace = try Workspace()
    let sample = try SampleStore(.sqliteFile, in: workspace, commits: 100, isClosed: true, &random)
    var bytes = try #require(try sample.bytes()[""])
    bytes[20] = 77
    try sample.write(bytes, "")
    let repair = try Repair(of: sample.file, to: StoreFile(newAt: workspace.path("new.json")))
    #expect(repair.contents.records.count == sample.newest.count, "\(repair.lines(width: nil))")
  }

  @Test(arguments: StoreKind.allCases) func `a repaired store is new, and says that deletions are forgotten`(kind: StoreKind) async throws {
    var random = SeededGenerator(seed: 7)
    let workspace = try Workspace()
    let sample = try SampleStore(kind, in: workspace, isClosed: true, &random)
    var bytes = try #require(try sample.bytes()[""])
    let record = try #require(sample.newest.values.first { (1..<400).contains($0.value?.count ?? 0) })
    let at = try #require(Data(bytes).firstRange(of: record.value ?? Data())).lowerBound
    bytes[at + 3] ^= 1
    try sample.write(bytes, "")
    let target = workspace.path("new.\(kind == .jsonFile ? "sqlite" : "json")")
    let run = try await larder("repair", sample.file.path, "--to", target, "--show-keys")
    #expect(run.code == 1)
    #expect(run.output.contains("lost: ") && run.output.contains("something is lost"))
    let saved = try StoreReading(path: target)
    #expect(saved.report.tombstoneHorizon.number == sample.commit)
    #expect(saved.records.count == sample.newest.values.count { $0.value != nil } - 1)
    #expect(try await larder("verify", target).code == 0)
    #expect(try await larder("repair", sample.file.path, "--to", target).code == 2)
  }
}
