import Foundation
import Larder
import LarderTesting
import Testing

/// A snapshot names the journal that belongs to it, so that two copies of a store are never mixed.
@Suite("Copies of a JSON store", .timeLimit(.minutes(15))) struct JSONFileLineageTests {
  private static let main = "/data/spots.json"
  private static let journal = main + "-journal"

  private func open(_ files: SimulatedFileSystem) throws -> (backend: JSONFileBackend, values: [String: String], report: OpenReport) {
    let backend = JSONFileBackend(file: URL(fileURLWithPath: Self.main), fileSystem: files, tuning: .init(journalChunk: 4_096))
    var values: [String: String] = [:]
    let report = try backend.openAndRecover(.init()) { values[$0.key.text] = $0.value.map { String(decoding: $0, as: UTF8.self) } }
    return (backend, values, report)
  }

  private func save(_ name: String, _ commits: ClosedRange<UInt64>, on backend: JSONFileBackend) throws {
    for commit in commits {
      let record = StoredRecord(
        collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("\"\(name)\"".utf8))
      try backend.commit(WriteBatch(records: [record], commits: commit...commit))
    }
  }

  /// A copy of the closed store with its own commits 1 to 4 in its document.
  private func diverged(from files: SimulatedFileSystem, checkpoints: Int) throws -> Data {
    let copy = files.copy()
    let other = try open(copy).backend
    for _ in 0..<checkpoints {
      let commit = other.verify().commit.number
      try save("B", (commit + 1)...(commit + UInt64(4 / checkpoints)), on: other)
      try other.checkpoint()
    }
    try other.close()
    return try #require(copy.contents(of: Self.main))
  }

  @Test(arguments: [1, 2, 4], [false, true]) func aDivergedCopyIsNotMixedWithTheJournal(checkpoints: Int, folds: Bool) throws {
    let files = SimulatedFileSystem()
    try open(files).backend.close()
    let copy = try diverged(from: files, checkpoints: checkpoints)
    let store = try open(files).backend
    try save("A", 1...4, on: store)
    if folds { try store.checkpoint() }
    try save("A", 5...7, on: store)
    let crashed = files.copy()
    let ours = try #require(crashed.contents(of: Self.main))
    try crashed.place(copy, at: Self.main)
    let before = crashed.fingerprint
    let error = #expect(throws: RepositoryError.self) { _ = try open(crashed) }
    #expect(error?.code == .corrupted && error?.offset == 0)
    #expect(crashed.fingerprint == before)
    try crashed.place(ours, at: Self.main)
    #expect(try open(crashed).values == Dictionary((1...7).map { ("key \($0)", "\"A\"") }) { $1 })
  }

  @Test func aBackupIsNotContinuedByTheJournalOfItsStore() throws {
    let files = SimulatedFileSystem()
    let store = try open(files).backend
    try save("A", 1...4, on: store)
    try store.backup(to: URL(fileURLWithPath: "/data/copy.json"))
    try save("A", 5...7, on: store)
    let crashed = files.copy()
    try crashed.place(try #require(crashed.contents(of: "/data/copy.json")), at: Self.main)
    #expect(throws: RepositoryError.self) { _ = try open(crashed) }
    try crashed.remove(Self.journal)
    #expect(try open(crashed).values.count == 4)
  }

  /// A store of the version before this one: its snapshot names no journal.
  @Test func storesOfTheVersionBeforeOpen() throws {
    let snapshot = """
      {"format":"larder","formatVersion":1,"store":"C0FFEE00-1234-4567-89AB-CDEF01234567","generation":2,"commit":3,"tombstonesSince":0,"crc":"7e0af4dc","records":[
      {"in":"spots","id":"brest","rev":1,"version":1,"crc":"4e338e1e","value":{"id":"brest","stars":4}},
      {"in":"spots","id":"crozon","rev":3,"version":1,"crc":"d9fd2ded","value":{"id":"crozon","stars":3}},
      {"in":"spots","id":"ouessant","rev":2,"version":1,"crc":"fc9a2dd6","deleted":true}
      ],"count":3,"hash":"2a84f28b8762844b"}

      """
    let journal = """
      4c41524445524a4c010000004d3c2b1ac0ffee001234456789abcdef01234567020000000000000003000000000000000000000000000000\
      00000000ecdab1334c46524d44000000040000000000000004000000000000000300000000000000010000008a191c5b0b00000006000000\
      19000000010000000400000000000000494f7a6e0000000073706f7473706f726e69637b226964223a22706f726e6963222c227374617273\
      223a327de68d19b500000000
      """
    var bytes = Data()
    var rest = journal[...]
    while !rest.isEmpty {
      bytes.append(try #require(UInt8(rest.prefix(2), radix: 16)))
      rest = rest.dropFirst(2)
    }
    for isCrashed in [false, true] {
      let files = SimulatedFileSystem()
      try files.createDirectory("/data")
      try files.place(Data(snapshot.utf8), at: Self.main)
      if isCrashed { try files.place(bytes, at: Self.journal) }
      for round in 0..<3 {
        let (store, values, report) = try open(files)
        #expect(report.isClean && values.count == (isCrashed ? 3 : 2) + round)
        let commit = report.commit.number + 1
        try save("new", (commit + 10_000)...(commit + 10_000), on: store, as: commit)
        if round == 1 { store.abandon() } else { try store.close() }
      }
    }
  }

  private func save(_ name: String, _ numbers: ClosedRange<UInt64>, on backend: JSONFileBackend, as commit: UInt64) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(numbers.lowerBound)"), revision: Revision(commit), schemaVersion: 1,
      value: Data("\"\(name)\"".utf8))
    try backend.commit(WriteBatch(records: [record], commits: commit...commit))
  }
}
