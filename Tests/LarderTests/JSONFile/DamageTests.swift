import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// Every single byte of a store's files overwritten, and every truncation.
///
/// Allowed are three outcomes: the full data; a refusal that names the file and the offset and leaves every file as it was; a recovery
/// whose report says that something was cut, with nothing in the data that nobody wrote.
@Suite("Damage to the files of a JSON store", .timeLimit(.minutes(Torture.isOn ? 60 : 15))) struct DamageTests {
  private static let snapshot = "/data/spots.json"
  private static let journal = "/data/spots.json-journal"

  /// A store of 20 records in its snapshot, one of them deleted, and 20 commits in its journal.
  private struct Fixture {
    let files: SimulatedFileSystem
    /// The contents of the store, and those after each commit of the journal.
    let history: [[String: String]]

    init() throws {
      files = SimulatedFileSystem()
      let backend = DamageTests.backend(files)
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      var state: [String: String] = [:]
      var history: [[String: String]] = []
      var commit: UInt64 = 0
      func save(_ key: String, _ value: String?) throws {
        commit += 1
        let record = StoredRecord(
          collection: "spots", key: RecordKey(key), revision: Revision(commit), schemaVersion: 1, value: value.map { Data($0.utf8) })
        try backend.commit(WriteBatch(records: [record], commits: commit...commit))
        state[key] = value
      }
      for number in 0..<20 { try save("key \(number)", #"{"name":"spot \#(number)","note":"as it was"}"#) }
      try save("key 7", nil)
      try backend.checkpoint()
      history.append(state)
      for number in 0..<20 {
        try save("key \(number % 10)", number % 6 == 5 ? nil : #"{"name":"spot \#(number)","note":"journaled"}"#)
        history.append(state)
      }
      self.history = history
    }
  }

  private static func backend(_ files: SimulatedFileSystem) -> JSONFileBackend {
    JSONFileBackend(file: URL(fileURLWithPath: snapshot), fileSystem: files, tuning: .init(journalChunk: 4_096))
  }

  private struct Tally: CustomStringConvertible {
    var (full, refused, recovered) = (0, 0, 0)
    var description: String { "\(full) with full data, \(refused) refused, \(recovered) recovered with a report" }
  }

  /// Opens damaged files and sorts the outcome.
  /// - Returns: What is wrong with it, if anything.
  private func examine(_ files: SimulatedFileSystem, _ fixture: Fixture, _ tally: inout Tally) -> String? {
    // The lock of the running store is not part of what is on disk.
    let before = files.fingerprint
    var found: [String: String] = [:]
    do throws(RepositoryError) {
      let backend = Self.backend(files)
      let report = try backend.openAndRecover(StoreOptions()) { record in
        found[record.key.text] = record.value.map { String(decoding: $0, as: UTF8.self) }
      }
      if found == fixture.history.last {
        tally.full += 1
        return nil
      }
      guard let cut = report.cutTail else { return "silently different" }
      guard fixture.history.contains(found) else { return "recovered to a state that never was" }
      guard files.contents(of: cut.quarantineFile)?.count == cut.byteCount else { return "the cut bytes are not kept" }
      tally.recovered += 1
      return nil
    } catch {
      guard error.file == Self.snapshot || error.file == Self.journal, error.offset != nil else { return "imprecise: \(error)" }
      guard files.fingerprint == before else { return "refused, but the files were changed" }
      tally.refused += 1
      return nil
    }
  }

  /// The values that are written over a byte: usually one of the two that most often leave valid JSON, by turns.
  private func values(for original: UInt8, at offset: Int) -> [UInt8] {
    let usual = [original ^ 0x01, UInt8(ascii: "0")]
    return Torture.isOn ? usual + [original ^ 0x20, original ^ 0x80, 0x00, 0xFF] : [usual[offset % 2]]
  }

  @Test(arguments: [snapshot, journal]) func noOverwrittenByteIsSilent(_ path: String) throws {
    let fixture = try Fixture()
    let contents = try #require(fixture.files.contents(of: path))
    var tally = Tally()
    for offset in contents.indices {
      let original = contents[offset]
      for byte in Set(values(for: original, at: offset)) where byte != original {
        let files = fixture.files.copy()
        var damaged = contents
        damaged[offset] = byte
        try files.place(damaged, at: path)
        if let problem = examine(files, fixture, &tally) { Issue.record("byte \(offset) of \(path) as \(byte): \(problem)") }
      }
    }
    print("\(path), each byte overwritten: \(tally)")
    #expect(tally.refused > contents.count / 4)
  }

  @Test(arguments: [snapshot, journal]) func noTruncationIsSilent(_ path: String) throws {
    let fixture = try Fixture()
    let contents = try #require(fixture.files.contents(of: path))
    var tally = Tally()
    for size in contents.indices {
      let files = fixture.files.copy()
      try files.place(contents.prefix(size), at: path)
      if let problem = examine(files, fixture, &tally) { Issue.record("\(path) cut to \(size) bytes: \(problem)") }
    }
    print("\(path), each truncation: \(tally)")
    #expect(tally.refused > 0)
  }

  @Test func filesOfTwoStoresAreNotMixed() throws {
    let (one, other) = (try Fixture(), try Fixture())
    let files = one.files.copy()
    try files.place(try #require(other.files.contents(of: Self.journal)), at: Self.journal)
    var tally = Tally()
    #expect(examine(files, one, &tally) == nil)
    #expect(tally.refused == 1)
  }

  @Test func aMainFileThatWasRestoredFromAnOlderCopyIsRefused() throws {
    let fixture = try Fixture()
    let old = try #require(fixture.files.contents(of: Self.snapshot))
    let files = fixture.files.copy()
    let backend = Self.backend(files)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.checkpoint()
    let newer = files.copy()
    try newer.place(old, at: Self.snapshot)
    let error = #expect(throws: RepositoryError.self) { _ = try Self.backend(newer).open(StoreOptions()) { _ in } }
    #expect(error?.code == .corrupted)
  }

  /// Each line has its right checksum, and one is out of date, as after a write that the disk lost.
  @Test func aLineOfAnOlderMainFileIsDamage() throws {
    let fixture = try Fixture()
    let files = fixture.files.copy()
    func lines() throws -> [Substring] {
      String(decoding: try #require(files.contents(of: Self.snapshot)), as: UTF8.self).split(separator: "\n")
    }
    func id(_ line: Substring) -> Substring { line.prefix { $0 != "," } + (line.drop { $0 != "," }.dropFirst().prefix { $0 != "," }) }
    let older = Dictionary(try lines().dropFirst().dropLast().map { (id($0), $0) }) { first, _ in first }
    let backend = Self.backend(files)
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    try backend.close()
    let newer = try lines()
    var count = 0
    for (number, line) in newer.enumerated().dropFirst().dropLast() {
      guard let old = older[id(line)], old != line else { continue }
      var mixed = newer
      mixed[number] = old
      try files.place(Data((mixed.joined(separator: "\n") + "\n").utf8), at: Self.snapshot)
      let error = #expect(throws: RepositoryError.self) { _ = try Self.backend(files).open(StoreOptions()) { _ in } }
      #expect(error?.code == .corrupted, "\(old)")
      count += 1
    }
    #expect(count >= 5)
  }

  @Test func aMissingMainFileIsNotAnEmptyStore() throws {
    let fixture = try Fixture()
    let files = fixture.files.copy()
    try files.remove(Self.snapshot)
    let error = #expect(throws: RepositoryError.self) { _ = try Self.backend(files).open(StoreOptions()) { _ in } }
    #expect(error?.code == .dataMissing)
  }
}
