import Foundation

@testable import Larder

/// The reader of journals.
///
/// The first byte of an input says whether the checksums of the rest are mended first: without that, hardly any input passes them.
enum JournalTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let choice = input.byte()
    var journal = [UInt8](input.rest)
    if choice & 1 == 1 { JournalRepair.mend(&journal, extending: choice & 2 == 2) }
    let data = Data(journal)
    var records: [StoredRecord] = []
    let contents: JournalReader.Contents
    do throws(RepositoryError) {
      contents = try JournalReader(data: data, file: "journal").read { record throws(RepositoryError) in records.append(record) }
    } catch {
      try promise([.corrupted, .newerSchema].contains(error.code), "expected .corrupted or .newerSchema, found \(error)")
      return try promise(error.offset ?? 0 <= UInt64(data.count), "an error names an offset behind the end: \(error)")
    }
    try promise(contents.lastCommit >= contents.header.base, "the newest commit is older than the journal's base")
    try promise((JournalFormat.headerSize...data.count).contains(contents.end), "the place for the next frame is outside")
    if case .torn(let end, _) = contents.tail {
      try promise(end > contents.end && end <= data.count, "a torn tail ends at \(end), behind \(contents.end) of \(data.count)")
    }
    try checkAppending(records, to: contents, of: data)
  }

  /// Checks that a frame with the same records, written where the next one belongs, is read back equal.
  private static func checkAppending(_ records: [StoredRecord], to contents: JournalReader.Contents, of data: Data) throws {
    let next = contents.lastCommit + 1
    guard next < .max - 1 else { return }
    let frame = JournalFrame.bytes(WriteBatch(records: records, commits: next...next), durableThrough: 0, seed: contents.header.seed)
    var journal = data.prefix(contents.end)
    journal.append(contentsOf: frame)
    journal.append(contentsOf: [UInt8](repeating: 0, count: JournalFormat.terminatorSize))
    var found: [StoredRecord] = []
    let reader = JournalReader(data: journal, file: "journal", mainFileCommit: contents.lastCommit)
    let again = try reader.read { record throws(RepositoryError) in found.append(record) }
    try promise(again.lastCommit == next && again.tail == .clean, "a frame that was appended is not the last one")
    try promise(found.map(\.checksum) == records.map(\.checksum), "records are not read as they were written")
    try promise(found.map(\.address) == records.map(\.address), "records are not read under their addresses")
    try promise(found.map(\.value) == records.map(\.value), "values are not read as they were written")
  }
}
