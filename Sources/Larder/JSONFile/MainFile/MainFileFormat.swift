internal import Foundation

/// The grammar of a main file: one header line, one line per record in key order, one seal line.
///
/// It is described in `Docs/Larder.docc/Formats/JSONSnapshotFormat.md`, with an example. There is exactly one way to write each value, so
/// a reader can compare bytes, and every byte is either compared or under a checksum.
enum MainFileFormat {
  static let version = 1
  /// The first bytes of a main file of any version; the number of the format follows.
  static let opening: StaticString = #"{"format":"larder","formatVersion":"#
}

/// The header of a main file.
struct MainFileHeader: Hashable, Sendable {
  var storeID: UUID
  /// The generation, which grows by one with every checkpoint; a journal names the one that it continues.
  var generation: UInt64
  /// The newest commit that is in the main file.
  var commit: UInt64
  /// The commit after which every deletion has a tombstone.
  var tombstonesSince: UInt64
  /// The salt of the journal that was folded into the main file; `nil` in a new store, in a copy, and where an older version wrote it.
  var folded: UInt32?
  /// The mark in the place of that salt where the file was put in place without a journal: on a full disk, or for an unused store.
  static let noJournal: UInt32 = 0
  /// The tag that a journal which continues the main file will carry, never 0; `nil` when an older version has written the file.
  ///
  /// A salt cannot be told in advance: two copies of a closed store would give it to two journals.
  var journal: UInt32?

  /// Returns a tag for a journal to come.
  static func newTag() -> UInt32 { .random(in: 1 ... .max) }
}

/// The hash in the seal: FNV-1a (64 bits) over the checksums of the header and of every record, in order.
///
/// Each line has its own checksum; the seal guards their number, order and completeness.
struct SealHash {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ checksum: UInt32) {
    var rest = checksum
    for _ in 0..<4 {
      value = (value ^ UInt64(rest & 0xFF)) &* 0x100_0000_01B3
      rest >>= 8
    }
  }
}
