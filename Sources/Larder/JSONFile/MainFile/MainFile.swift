internal import Foundation

/// The main file of a store: open, and locked itself, so that no other store uses it by another name.
struct MainFile: Sendable {
  let file: any OpenFile
  /// The identity of the file.
  let identity: FileIdentity?
  let header: MainFileHeader
  /// Its size in bytes.
  let size: Int
  /// The permission bits and the owner, which the next one gets too.
  let mode: UInt16
  let owner: FileOwner?
  /// The tombstones in it, and the commits of their deletions.
  let tombstones: [RecordAddress: UInt64]

  init(_ file: any OpenFile, _ header: MainFileHeader, tombstones: [RecordAddress: UInt64]) throws(RepositoryError) {
    let status = try file.status()
    self.file = file
    self.header = header
    self.tombstones = tombstones
    (identity, size, mode, owner) = (status.identity, status.size, status.mode, status.owner)
  }

  /// Returns the same main file by another descriptor of it.
  func reopened(as file: any OpenFile) throws(RepositoryError) -> MainFile { try MainFile(file, header, tombstones: tombstones) }

  /// Gives another file the owner of this one and the attributes that an app has set on it, such as the exclusion from backups.
  func passOn(to target: any OpenFile) throws(RepositoryError) {
    if let owner { try target.setOwner(owner) }
    try target.copyAttributes(of: file)
  }

  /// Opens the main file and locks it; `nil` when there is none.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` when it is open by whatever name; `.unsupported` when it has several names, since what is
  ///   written by one of them would not be seen by the others.
  static func open(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> (any OpenFile)? {
    // A round ends without a lock only when a holder has put another file in place in this very moment.
    for _ in 0..<1_000 {
      guard let file = try fileSystem.open(path, writable: false) else { return nil }
      try file.lock()
      let status = try file.status()
      if let found = try fileSystem.status(of: path), found.identity == status.identity {
        guard status.linkCount <= 1 else {
          throw RepositoryError(
            .unsupported, "the file has \(status.linkCount) names (hard links), and a store has one; remove the others, or copy it",
            file: path)
        }
        return file
      }
      try file.close()
    }
    throw RepositoryError(.locked, "other processes keep replacing the file", file: path)
  }
}

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

/// The bytes of a main file: in memory, or in an open file that is read in parts.
enum MainFileSource: Sendable {
  case data(Data)
  case file(any OpenFile)

  /// Returns up to `count` bytes from an offset; fewer only at the end.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    switch self {
    case .data(let data):
      let start = min(offset, data.count)
      return data[(data.startIndex + start)..<(data.startIndex + start + min(count, data.count - start))]
    case .file(let file): return try file.read(at: offset, count: count)
    }
  }

  /// Returns the number of bytes.
  func size() throws(RepositoryError) -> Int {
    switch self {
    case .data(let data): data.count
    case .file(let file): try file.size()
    }
  }
}
