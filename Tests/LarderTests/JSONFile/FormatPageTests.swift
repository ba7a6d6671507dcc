import Foundation
import Testing

@testable import Larder

/// The pages that describe the formats show bytes; these tests make the same bytes with the code and compare.
@Suite(.timeLimit(.minutes(15))) struct FormatPageTests {
  @Test func theSnapshotPageShowsWhatTheWriterWrites() throws {
    let text = String(decoding: try FormatExample.snapshot(), as: UTF8.self)
    let block = "```json\n" + text + "```\n"
    #expect(try page("JSONSnapshotFormat").contains(block), "the page must hold this block:\n\(block)")
  }

  @Test func theJournalPageShowsWhatTheWriterWrites() throws {
    let block = "```hexdump\n" + hexDump(try FormatExample.journal()) + "```\n"
    #expect(try page("JournalFormat").contains(block), "the page must hold this block:\n\(block)")
  }

  @Test func theIndexPageShowsWhatTheWriterWrites() throws {
    let bytes = IndexFileFormat.bytes(of: try FormatExample.index())
    let block = "```hexdump\n" + hexDump(Data(bytes)) + "```\n"
    #expect(try page("IndexFileFormat").contains(block), "the page must hold this block:\n\(block)")
    let (index, slots) = try #require(bytes.withUnsafeBytes { IndexFileFormat.index(in: $0) })
    #expect(IndexFileFormat.bytes(of: index) == bytes && slots.offset == 4_096 && slots.size == 4_096)
    let slot = IndexFileSlots.Slot(
      sequence: 3, commit: 6, journal: 0x8725_4A88, catalog: IndexFilePart(offset: 16_384, size: 62, checksum: 7), edits: .none,
      collections: ["spots": CollectionCount(records: 2, bytes: 100, versions: (1, 1))])
    let written = try #require(slots.bytes(slot))
    let read = try #require(written.withUnsafeBytes { slots.slot(in: $0) })
    #expect(read.sequence == 3 && read.commit == 6 && read.journal == 0x8725_4A88 && read.catalog == slot.catalog)
    #expect(read.edits == .none && read.collections["spots"]?.records == 2 && written.count == 101)
  }

  @Test func theIndexPageShowsThePartsThatAreWritten() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("spots.json")
    try FormatExample.snapshot().write(to: file)
    let backend = JSONFileBackend(file: file, fileSystem: POSIXFileSystem(), tuning: .init(smallFile: 0))
    let commit = try backend.openPagedAndRecover(StoreOptions()).report.commit.number + 1
    let index = StoredIndexID(collection: "spots", name: "ordered(stars)")
    func key(_ text: String) -> Data { Data(text.utf8) }
    try backend.extendIndex(index, by: [key("3 crozon"), key("4 brest"), key("4 brignogan")], isFirst: true)
    try backend.storeBoundaries([Data()], of: index)
    let record = StoredRecord(
      collection: "spots", key: RecordKey("crozon"), revision: Revision(commit), schemaVersion: 1, value: Data(#"{"stars":5}"#.utf8))
    try backend.commit(
      WriteBatch(
        records: [record], commits: commit...commit,
        indexEdits: [IndexEdit(index: index, removed: key("3 crozon"), added: key("5 crozon"))], indexes: [index],
        recordCounts: ["spots": 2]))
    try backend.flush()
    let bytes = try Data(contentsOf: directory.file("spots.json-index"))
    backend.abandon()
    let block = "```hexdump\n" + hexDump(bytes.dropFirst(16_384), from: 16_384) + "```\n"
    #expect(try page("IndexFileFormat").contains(block), "the page must hold this block:\n\(block)")
  }

  @Test func theExamplesAreReadAsThePagesSay() throws {
    let directory = try TemporaryDirectory()
    try FormatExample.snapshot().write(to: directory.file("spots.json"))
    try FormatExample.journal().write(to: directory.file("spots.json-journal"))
    let backend = JSONFileBackend(file: directory.file("spots.json"))
    var records: [String: StoredRecord] = [:]
    let report = try backend.openAndRecover(.init()) { records[$0.key.text] = $0 }
    #expect(report.storeID == FormatExample.header.storeID)
    #expect(report.commit == Revision(6) && report.replayedCommits == 3 && report.isClean)
    #expect(records.mapValues(\.revision.number) == ["brest": 6, "crozon": 5, "ouessant": 2, "pornic": 4])
    #expect(records.filter { $0.value.value == nil }.keys.sorted() == ["brest", "ouessant"])
    #expect(records["crozon"]?.value.map { String(decoding: $0, as: UTF8.self) } == #"{"id":"crozon","stars":5}"#)
    try backend.close()
    #expect(try directory.names == ["spots.json"])
  }

  private func page(_ name: String) throws -> String {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<4 { root.deleteLastPathComponent() }
    return try String(contentsOf: root.appendingPathComponent("Docs/Larder.docc/Formats/\(name).md"), encoding: .utf8)
  }

  /// Sixteen bytes a line, as `xxd -g 1` prints them, without the zero bytes that are allocated ahead.
  private func hexDump(_ bytes: Data, from base: Int = 0) -> String {
    var rows = Array(bytes)
    while rows.count > 4, rows.suffix(5).allSatisfy({ $0 == 0 }) { rows.removeLast() }
    return stride(from: 0, to: rows.count, by: 16).map { start in
      let row = rows[start..<min(start + 16, rows.count)]
      let hex = row.map { Hexadecimal.string($0) }.joined(separator: " ")
      let text = String(decoding: row.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: ".") }, as: UTF8.self)
      return Hexadecimal.string(UInt32(base + start)) + ": " + hex.padding(toLength: 47, withPad: " ", startingAt: 0) + "  " + text + "\n"
    }.joined()
  }
}

/// The store that the pages show: fixed inputs, so that its bytes are the same on every machine.
enum FormatExample {
  static let header = MainFileHeader(
    storeID: UUID(uuid: (0xC0, 0xFF, 0xEE, 0x00, 0x12, 0x34, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x67)),
    generation: 2, commit: 3, tombstonesSince: 0, folded: 0x5E6F_7A8B, journal: 0x4D3C_2B1A)

  /// The index of the snapshot.
  static func index() throws -> MainFileIndex {
    var index: MainFileIndex?
    _ = try snapshot { index = $0 }
    return try #require(index)
  }

  /// Two records and a tombstone.
  static func snapshot(_ take: (MainFileIndex?) -> Void = { _ in }) throws -> Data {
    try written { file in
      var writer = MainFileWriter(file, header, isIndexed: true)
      for record in [
        record("brest", revision: 1, #"{"id":"brest","stars":4}"#), record("crozon", revision: 3, #"{"id":"crozon","stars":3}"#),
        record("ouessant", revision: 2, nil),
      ] {
        try writer.add(record)
      }
      take(try writer.finish())
    }
  }

  /// One commit alone, then two that shared a sync.
  static func journal() throws -> Data {
    try written { file in
      let journalHeader = JournalHeader(
        storeID: header.storeID, generation: header.generation, base: header.commit, salt: 0x1A2B_3C4D, tag: 0x4D3C_2B1A)
      let empty = try JournalWriter.create(file, journalHeader, chunk: 512)
      var writer = try JournalWriter(continuing: file, empty, chunk: 512)
      try writer.append(
        WriteBatch(records: [record("pornic", revision: 4, #"{"id":"pornic","stars":2}"#)], commits: 4...4, durability: .durable))
      try writer.append(
        WriteBatch(
          records: [record("crozon", revision: 5, #"{"id":"crozon","stars":5}"#), record("brest", revision: 6, nil)], commits: 5...6,
          durability: .durable))
    }
  }

  private static func record(_ key: String, revision: UInt64, _ value: String?) -> StoredRecord {
    StoredRecord(
      collection: "spots", key: RecordKey(key), revision: Revision(revision), schemaVersion: 1, value: value.map { Data($0.utf8) })
  }

  /// The bytes that a closure writes into a file.
  private static func written(_ write: (any OpenFile) throws -> Void) throws -> Data {
    let directory = try TemporaryDirectory()
    let file = try POSIXFileSystem().create(directory.pathOfFile("example"))
    try write(file)
    return try file.read(at: 0, count: file.size())
  }
}
