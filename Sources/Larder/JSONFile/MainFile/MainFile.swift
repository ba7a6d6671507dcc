// MainFile/ reads and writes the main file: a header, records in key order, and a seal with checksums.
// Invariant: the file is a whole, valid JSON document at all times.
// Called by the folder JSONFile.

internal import Foundation

/// The open main file of a store, locked itself so that no other store uses it by another name.
struct MainFile: Sendable {
  let file: any OpenFile
  /// Device and inode of the main file, if the file system has them.
  let identity: FileIdentity?
  let header: MainFileHeader
  /// Size in bytes.
  let size: Int
  /// Permission bits and owner, which the next main file gets too.
  let mode: UInt16
  let owner: FileOwner?
  /// Tombstones in the file, with the commits of their deletions.
  let tombstones: [RecordAddress: UInt64]

  init(_ file: any OpenFile, _ header: MainFileHeader, tombstones: [RecordAddress: UInt64]) throws(RepositoryError) {
    let status = try file.status()
    self.file = file
    self.header = header
    self.tombstones = tombstones
    (identity, size, mode, owner) = (status.identity, status.size, status.mode, status.owner)
  }

  /// Returns the same main file with another descriptor.
  func reopened(as file: any OpenFile) throws(RepositoryError) -> MainFile { try MainFile(file, header, tombstones: tombstones) }

  /// Copies the owner and the attributes that an app has set, such as the exclusion from backups, to another file.
  func passOn(to target: any OpenFile) throws(RepositoryError) {
    if let owner { try target.setOwner(owner) }
    try target.copyAttributes(of: file)
  }

  /// Opens the main file and locks it, or returns `nil` if there is none.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if it is open, by any name. `.unsupported` if it has several names, since a rename replaces one
  ///   of them only and the others keep the old contents.
  static func open(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> (any OpenFile)? {
    // A round ends without a lock only if a holder has renamed another file into place between opening and locking.
    for _ in 0..<1_000 {
      guard let file = try fileSystem.open(path, writable: false) else { return nil }
      try file.lock()
      let status = try file.status()
      // A lock on a file that was replaced excludes nobody.
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

/// The grammar of a main file: one header line, one line for each record in key order, one seal line.
///
/// `Docs/Larder.docc/Formats/JSONSnapshotFormat.md` describes it, with an example. There is exactly one way to write each value. A reader
/// can therefore compare bytes, and compares every byte or its checksum.
enum MainFileFormat {
  static let version = 1
  /// First bytes of a main file of any version.
  ///
  /// The number of the format follows.
  static let opening: StaticString = #"{"format":"larder","formatVersion":"#
}

/// The header of a main file.
struct MainFileHeader: Hashable, Sendable {
  var storeID: UUID
  /// Generation, which grows by one with every checkpoint.
  ///
  /// A journal names the one that it continues.
  var generation: UInt64
  /// Newest commit in the main file.
  var commit: UInt64
  /// Commit after which every deletion has a tombstone.
  var tombstonesSince: UInt64
  /// Salt of the journal that was folded into the main file, or `nil` in a new store, in a copy, and in a file of an older version.
  var folded: UInt32?
  /// Value of `folded` in a file that was renamed into place without a journal, on a full disk or for an unused store.
  static let noJournal: UInt32 = 0
  /// Tag that a journal which continues the main file will carry, never 0, or `nil` in a file of an older version.
  ///
  /// A salt that the main file chose in advance would not do: two copies of a closed store would give it to two journals.
  var journal: UInt32?

  /// Returns a random tag for the journal that will continue a main file.
  static func newTag() -> UInt32 { .random(in: 1 ... .max) }
}

/// The hash in the seal: FNV-1a (64 bits) over the checksums of the header and of every record, in order.
///
/// Each line has its own checksum. The seal protects their number, order and completeness.
struct SealHash {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ checksum: UInt32) {
    var rest = checksum
    // Byte by byte, least significant first, as the format says.
    for _ in 0..<4 {
      value = (value ^ UInt64(rest & 0xFF)) &* 0x100_0000_01B3
      rest >>= 8
    }
  }
}

/// The bytes of a main file, in memory or in an open file that is read in parts.
enum MainFileSource: Sendable {
  case data(Data)
  case file(any OpenFile)

  /// Returns up to `count` bytes from an offset, and fewer only at the end.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    switch self {
    case .data(let data):
      // An offset behind the end is no error, as in a file.
      let start = min(offset, data.count)
      return data[(data.startIndex + start)..<(data.startIndex + start + min(count, data.count - start))]
    case .file(let file): return try file.read(at: offset, count: count)
    }
  }

  /// Returns the size in bytes.
  func size() throws(RepositoryError) -> Int {
    switch self {
    case .data(let data): data.count
    case .file(let file): try file.size()
    }
  }
}
