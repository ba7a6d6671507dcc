import Foundation
import LarderTesting

@testable import Larder

/// The reader of main files: what it accepts is what the writer writes of the same records, byte for byte.
///
/// The first byte of an input says whether the checksums of the rest are mended first.
enum MainFileTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let choice = input.byte()
    let data = Data(choice & 1 == 1 ? MainFileRepair.mend([UInt8](input.rest)) : [UInt8](input.rest))
    var records: [StoredRecord] = []
    let header: MainFileHeader
    do throws(RepositoryError) {
      // Small parts, so that lines are also read across their borders.
      let reader = MainFileReader(source: .data(data), file: "main", partSize: choice & 2 == 2 ? 64 : 256 << 10)
      header = try reader.read(
        { packs, tombstones in
          for pack in packs { pack.forEach { records.append($0) } }
          records += tombstones
        }, begin: { (_) throws(RepositoryError) in [:] })
    } catch {
      try promise([.corrupted, .newerSchema, .notOurStore].contains(error.code), "expected a refusal of the file, found \(error)")
      return try promise(error.offset ?? 0 <= UInt64(data.count), "an error names an offset behind the end: \(error)")
    }
    records.sort { $0.address < $1.address }
    for (record, next) in zip(records, records.dropFirst()) {
      try promise(record.address < next.address, "an address was read twice")
    }
    try promise(records.allSatisfy { $0.revision.number <= header.commit }, "a record is newer than its file")
    try promise(try written(header, records) == data, "the writer writes a file that was read with other bytes")
  }

  /// Returns the main file of some records.
  private static func written(_ header: MainFileHeader, _ records: [StoredRecord]) throws -> Data? {
    let files = SimulatedFileSystem()
    var writer = MainFileWriter(try files.create("/main"), header)
    for record in records { try writer.add(record) }
    try writer.finish()
    return files.contents(of: "/main")
  }
}
