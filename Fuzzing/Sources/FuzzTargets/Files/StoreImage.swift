import Foundation

@testable import Larder

/// The records of a store at one commit, as a backend hands them over.
struct StoreImage: Equatable {
  /// The values by address; those of deleted records are left out.
  var values: [RecordAddress: Data] = [:]
  /// The newest commit.
  var commit: UInt64 = 0

  /// Reads a store, and makes sure that each address comes once.
  static func read(_ backend: some StorageBackend, _ options: StoreOptions = .init()) throws -> (image: StoreImage, report: OpenReport) {
    var image = StoreImage()
    var seen: Set<RecordAddress> = []
    var twice = 0
    var newest: UInt64 = 0
    let report = try backend.open(options) { record in
      if !seen.insert(record.address).inserted { twice += 1 }
      newest = max(newest, record.revision.number)
      image.values[record.address] = record.value
    }
    image.commit = report.commit.number
    try promise(twice == 0, "\(twice) addresses were handed over twice")
    try promise(newest <= image.commit, "a record is of commit \(newest), the store of \(image.commit)")
    return (image, report)
  }

  /// Puts the records of a batch in.
  mutating func apply(_ batch: WriteBatch) {
    for record in batch.records { values[record.address] = record.value }
    commit = batch.commits.upperBound
  }

  /// Makes the batch of the next commit, of a few changes.
  func nextBatch(_ input: inout FuzzInput) -> WriteBatch {
    let next = commit + 1
    var records: [StoredRecord] = []
    for _ in 0...input.int(below: 3) {
      let choice = input.byte()
      let text = #"{"n":\#(choice),"t":"\#(String(repeating: "x", count: Int(choice & 0x3F)))"}"#
      records.append(
        StoredRecord(
          collection: choice & 0x40 == 0 ? "spots" : "notes", key: RecordKey("k\(choice % 7)"), revision: Revision(next), schemaVersion: 1,
          value: choice & 0x80 == 0 ? Data(text.utf8) : nil))
    }
    return WriteBatch(records: records, commits: next...next)
  }
}
