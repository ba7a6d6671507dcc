import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// Opens damaged copies of a store.
///
/// Each gives all of the data, a precise error with every file as it was, or a report: never silence, never a trap.
@Suite("SQLite: damage", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct SQLiteDamageTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  private struct Outcomes {
    var whole = 0
    var refused = 0
    var reported = 0
  }

  /// A store of 20 records and two tombstones, closed.
  private func closedStore() throws -> (files: [String: Data], contents: Contents) {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<21).map { record("spot-\($0)", #"{"id":"spot-\#($0)","name":"Jogashima \#($0)"}"#, at: 1) }, at: 1)
    try backend.commit([record("spot-20", nil, at: 2), record("spot-21", nil, at: 2)], at: 2)
    try backend.close()
    return (try directory.contents(), try readBack(url).contents)
  }

  /// A store of 20 records as a killed process leaves it, its log with it.
  private func killedStore(_ durability: Durability) throws -> (files: [String: Data], states: [Contents]) {
    var states: [Contents] = []
    var contents: Contents = [:]
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number: UInt64 in 1...20 {
      let record = record("spot-\(number)", #"{"name":"Jogashima \#(number)"}"#, at: number)
      states.append(contents)
      try backend.commit([record], at: number, durability)
      contents[record.address] = text(record)
    }
    let files = try directory.contents().filter { $0.key.hasSuffix(".sqlite") || $0.key.hasSuffix("-wal") }
    try backend.close()
    return (files, states + [contents])
  }

  @Test func aLogThatWasStartedAgainIsOpenedAsAKilledProcessLeavesIt() throws {
    // Behind the frames of the new generation lie those of the old one, which chain to each other and are no loss.
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    let padding = String(repeating: "x", count: 20_000)
    var (number, size, restarted) = (UInt64(0), 0, 0)
    while restarted < 3 && number < 5_000 {
      number += 1
      try backend.commit([record("spot-\(number % 50)", #"{"name":"\#(padding)"}"#, at: number)], at: number, .buffered)
      if number % 200 == 0 { try backend.checkpoint() }
      let log = try directory.contents().first { $0.key.hasSuffix("-wal") }?.value.count ?? 0
      restarted = log == size && size > 0 && number > 200 ? restarted + 1 : 0
      size = log
    }
    #expect(restarted == 3, "the log was never started again")
    let files = try directory.contents().filter { $0.key.hasSuffix(".sqlite") || $0.key.hasSuffix("-wal") }
    try backend.close()
    for (name, data) in files { try data.write(to: directory.file(name)) }
    let (report, _) = try SQLiteBackend(file: url).openAll()
    #expect(report.commit == Revision(number) && report.cutTail == nil)
  }

  /// Opens what is there and judges it against the states that may be seen without a report.
  private func judge(_ expected: Contents, _ files: [String: Data], _ outcomes: inout Outcomes, _ what: @autoclosure () -> String) throws {
    let backend = SQLiteBackend(file: url)
    do {
      let (report, contents) = try backend.openAll()
      if contents == expected {
        outcomes.whole += 1
      } else {
        outcomes.reported += 1
        #expect(report.cutTail != nil, "silent change: \(what())")
      }
      if let tail = report.cutTail {
        #expect(try Data(contentsOf: URL(filePath: tail.quarantineFile)) == files["spots.sqlite-wal"], "\(what())")
      }
      try backend.close()
    } catch {
      outcomes.refused += 1
      let error = try #require(error as? RepositoryError)
      #expect([.corrupted, .notOurStore, .newerSchema].contains(error.code), "\(what()): \(error)")
      #expect(error.file?.contains("spots.sqlite") == true)
      for (name, data) in files { #expect(try Data(contentsOf: directory.file(name)) == data, "\(what()) changed \(name)") }
    }
  }

  /// Returns places that the seed picks; ``FixtureDamageTests`` goes through every bit with `LARDER_TORTURE`.
  private func sample(_ count: Int, of total: Int, _ generator: inout SeededGenerator) -> [Int] {
    Array((0..<total).shuffled(using: &generator).prefix(count))
  }

  @Test func aDamagedByteOfTheDatabaseIsNeverSilent() throws {
    var generator = SeededGenerator("aDamagedByteOfTheDatabaseIsNeverSilent")
    let (files, contents) = try closedStore()
    let original = try #require(files["spots.sqlite"])
    var outcomes = Outcomes()
    // Everything that is not zero carries something; of the zeros a sample will do.
    let used = original.indices.filter { original[$0] != 0 }
    let offsets =
      sample(Torture.count(250, full: 1_000), of: used.count, &generator).map { used[$0] }
      + sample(Torture.count(50, full: 200), of: original.count, &generator)
    for offset in offsets {
      var damaged = original
      damaged[offset] ^= generator.next() % 4 == 0 ? 0xFF : 1 << UInt8(generator.next() % 8)
      let files = ["spots.sqlite": damaged]
      try directory.replace(with: files)
      try judge(contents, files, &outcomes, "byte \(offset) from \(original[offset]) to \(damaged[offset])")
    }
    print("figures: database bytes: \(outcomes)")
    #expect(outcomes.refused > Torture.count(120, full: 500) && outcomes.reported == 0)
  }

  @Test func aTruncatedDatabaseIsNeverSilent() throws {
    var generator = SeededGenerator("aTruncatedDatabaseIsNeverSilent")
    let (files, contents) = try closedStore()
    let original = try #require(files["spots.sqlite"])
    var outcomes = Outcomes()
    let lengths = Array(0...110) + stride(from: 0, to: original.count, by: 512) + sample(50, of: original.count, &generator)
    for length in lengths {
      let files = ["spots.sqlite": original.prefix(length)]
      try directory.replace(with: files)
      try judge(contents, files, &outcomes, "length \(length)")
    }
    print("figures: database lengths: \(outcomes)")
    #expect(outcomes.whole == 0 && outcomes.reported == 0)
  }

  @Test(arguments: [Durability.durable, .buffered])
  func aDamagedByteOfTheLogIsNeverSilent(_ durability: Durability) throws {
    var generator = SeededGenerator("aDamagedByteOfTheLogIsNeverSilent")
    let (files, states) = try killedStore(durability)
    let original = try #require(files["spots.sqlite-wal"])
    let contents = try #require(states.last)
    var outcomes = Outcomes()
    var offsets = Array(0..<32) + sample(Torture.count(50, full: 100), of: original.count, &generator)
    let headers = stride(from: 32, to: original.count, by: 24 + 4_096).flatMap { $0..<$0 + 24 }
    offsets += sample(Torture.count(60, full: 150), of: headers.count, &generator).map { headers[$0] } + headers.suffix(24)
    for offset in offsets {
      var damaged = original
      damaged[offset] ^= 1 << UInt8(generator.next() % 8)
      var files = files
      files["spots.sqlite-wal"] = damaged
      try directory.replace(with: files)
      try judge(contents, files, &outcomes, "byte \(offset) from \(original[offset]) to \(damaged[offset])")
    }
    print("figures: log bytes, \(durability): \(outcomes)")
    #expect(outcomes.whole < 10)
  }

  /// A log that ends on a whole commit is what a crash before the next one leaves: nobody can tell them apart.
  @Test func aTruncatedLogGivesAnEarlierStateAndReportsAllButAWholeOne() throws {
    var generator = SeededGenerator("aTruncatedLogGivesAnEarlierStateAndReportsAllButAWholeOne")
    let (files, states) = try killedStore(.durable)
    let original = try #require(files["spots.sqlite-wal"])
    let frame = 24 + 4_096
    var silent = 0
    let lengths =
      Array(0...40) + stride(from: 32, to: original.count, by: frame) + stride(from: 31, to: original.count, by: frame)
      + stride(from: 33, to: original.count, by: frame) + sample(20, of: original.count, &generator)
    for length in lengths {
      var files = files
      files["spots.sqlite-wal"] = original.prefix(length)
      try directory.replace(with: files)
      let (report, contents) = try readBack(url)
      let state = Int(report.commit.number)
      #expect(contents == states[state], "length \(length)")
      let isWholeFrames = length == 0 || (length >= 32 && (length - 32) % frame == 0)
      #expect((report.cutTail == nil) == isWholeFrames, "length \(length)")
      #expect(report.cutTail?.isAmbiguous != false, "nothing tells whether whole commits were cut off too")
      if report.cutTail == nil { silent += 1 }
      // What was cut is not met again.
      #expect(try readBack(url).report.isClean)
    }
    print("figures: log lengths: \(lengths.count), whole frames: \(silent)")
  }

  @Test func strictRecoveryRefusesATornLog() throws {
    let (files, states) = try killedStore(.durable)
    let original = try #require(files["spots.sqlite-wal"])
    var torn = files
    torn["spots.sqlite-wal"] = original.prefix(original.count - 1)
    try directory.replace(with: torn)
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url, StoreOptions(recovery: .strict)) }
    #expect(error?.code == .corrupted && error?.offset != nil && error?.file?.hasSuffix("-wal") == true)
    #expect(try directory.contents()["spots.sqlite-wal"] == torn["spots.sqlite-wal"])
    let (report, contents) = try readBack(url)
    #expect(contents == states[19] && report.cutTail?.isAmbiguous == true)
  }

  @Test func damageBeforeALaterDurableCommitIsRefused() throws {
    let (files, _) = try killedStore(.durable)
    var damaged = files
    damaged["spots.sqlite-wal"]?[32 + 24 + 5] ^= 1
    try directory.replace(with: damaged)
    let error = #expect(throws: RepositoryError.self) { _ = try readBack(url) }
    #expect(error?.code == .corrupted && error?.offset == 32)
    #expect(try directory.contents()["spots.sqlite-wal"] == damaged["spots.sqlite-wal"])
    #expect(try directory.contents()["spots.sqlite"] == damaged["spots.sqlite"])
  }

  @Test func anOldPageInPlaceOfANewOneIsDamage() throws {
    // A write that the disk lost: every row on the page has its right checksum, and is out of date.
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<200).map { record("spot-\($0)", #""first value""#, at: 1) }, at: 1)
    try backend.checkpoint()
    let old = try #require(directory.contents()["spots.sqlite"])
    try backend.commit([record("spot-7", #""other value""#, at: 2)], at: 2)
    try backend.close()
    let new = try #require(directory.contents()["spots.sqlite"])
    #expect(old.count == new.count)
    var differing = 0
    for page in stride(from: 4_096, to: new.count, by: 4_096) where old[page..<page + 4_096] != new[page..<page + 4_096] {
      differing += 1
      var mixed = new
      mixed.replaceSubrange(page..<page + 4_096, with: old[page..<page + 4_096])
      try directory.replace(with: ["spots.sqlite": mixed])
      #expect(code { _ = try readBack(url) } == .corrupted, "page \(page / 4_096)")
    }
    #expect(differing >= 2)
  }

  @Test func pagesThatChangedPlacesAreDamage() throws {
    // Every row is there with its right checksum and the sum is right, but a lookup would not find them.
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    try backend.commit((0..<200).map { record("spot-\($0)", #""value""#, at: 1) }, at: 1)
    try backend.close()
    let original = try #require(directory.contents()["spots.sqlite"])
    // The first byte of a page tells its kind: 10 is a leaf of an index tree. The first two are larder's own tables.
    let leaves = stride(from: 4_096, to: original.count, by: 4_096).filter { original[$0] == 10 && original[$0 + 4] > 3 }
    try #require(leaves.count >= 2)
    var swapped = original
    swapped.replaceSubrange(leaves[0]..<leaves[0] + 4_096, with: original[leaves[1]..<leaves[1] + 4_096])
    swapped.replaceSubrange(leaves[1]..<leaves[1] + 4_096, with: original[leaves[0]..<leaves[0] + 4_096])
    try directory.replace(with: ["spots.sqlite": swapped])
    #expect(code { _ = try readBack(url) } == .corrupted)
  }
}
