// The folder MainFile/ reads and writes the main file of a JSON store: a header, records in key order, and a seal (a last line with a hash
// of all checksums).
// Invariant: the file is a whole, valid JSON document at all times.
// The folder MainFile/ is called by the folder JSONFile/.

internal import Foundation

/// The open main file of a store, which is locked so that no other store can open the same file under another name.
struct MainFile: Sendable {
  let file: any OpenFile
  /// Device and inode of the main file, or `nil` if the file system has none.
  let identity: FileIdentity?
  let header: MainFileHeader
  /// Size of the main file in bytes.
  let size: Int
  /// Permission bits of the main file, which the next main file gets too.
  let mode: UInt16
  let owner: FileOwner?
  /// Addresses (collection and key) of the tombstones in the main file, with the commits of the deletions.
  let tombstones: [RecordAddress: UInt64]
  /// Index that was made while this main file was written, until the store takes it into use.
  var newIndex: NewIndex?

  init(_ file: any OpenFile, _ header: MainFileHeader, tombstones: [RecordAddress: UInt64]) throws(RepositoryError) {
    let status = try file.status()
    self.file = file
    self.header = header
    self.tombstones = tombstones
    (identity, size, mode, owner) = (status.identity, status.size, status.mode, status.owner)
  }

  /// Returns the main file with another descriptor of the same file.
  func reopened(as file: any OpenFile) throws(RepositoryError) -> MainFile { try MainFile(file, header, tombstones: tombstones) }

  /// Copies the owner of the main file, and attributes that an app has set, such as the exclusion from backups, to another file.
  func passOn(to target: any OpenFile) throws(RepositoryError) {
    if let owner { try target.setOwner(owner) }
    try target.copyAttributes(of: file)
  }

  /// Opens the main file and locks it, or returns `nil` if there is no main file.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if the file is open under any of its names. `.unsupported` if the file has several names (hard
  ///   links), because a rename replaces only one name and the other names keep the old contents.
  static func open(_ path: String, _ fileSystem: any FileSystem) throws(RepositoryError) -> (any OpenFile)? {
    // The loop opens the file again if another process has renamed a new main file into place since the file was opened.
    for _ in 0..<1_000 {
      guard let file = try fileSystem.open(path, writable: false) else { return nil }
      try file.lock()
      let status = try file.status()
      // If the file was replaced at its path, a lock on the replaced file excludes no other process, so the path must still lead to the
      // locked file.
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

/// The grammar of a main file: a header line, a line for each record in key order, and a last line, the seal, with a hash of all checksums.
///
/// `Docs/Larder.docc/Formats/JSONSnapshotFormat.md` describes the grammar, with an example. The format allows exactly one spelling of each
/// value, so a reader can check every byte, either directly or by a checksum.
enum MainFileFormat {
  static let version = 1
  /// First bytes of a main file of any version.
  ///
  /// The version number of the format follows these bytes.
  static let opening: StaticString = #"{"format":"larder","formatVersion":"#
}

/// The header of a main file.
struct MainFileHeader: Hashable, Sendable {
  var storeID: UUID
  /// Generation of the main file, which grows by one with every checkpoint.
  ///
  /// A journal names the generation of the main file that it continues.
  var generation: UInt64
  /// Newest commit in the main file.
  var commit: UInt64
  /// Commit after which every deletion has a tombstone (a record of the deletion).
  ///
  /// Tombstones of earlier deletions may have been dropped.
  var tombstonesSince: UInt64
  /// Salt of the journal that was folded into the main file.
  ///
  /// The salt is `nil` in a new store, in a backup copy, and in a file of an older version of Larder.
  var folded: UInt32?
  /// Value of `folded` in a main file that was written while the store had no journal, on a full disk or in a store without commits.
  static let noJournal: UInt32 = 0
  /// Tag that the next journal must have in its header, never 0, or `nil` in a file of an older version of Larder.
  ///
  /// The journal's salt cannot serve as the tag: a salt that the main file fixed in advance would be the same in the journals of two copies
  /// of a closed store.
  var journal: UInt32?

  /// Returns a random tag for the journal that will continue a main file.
  static func newTag() -> UInt32 { .random(in: 1 ... .max) }
}

/// The hash in a main file's last line (the seal): FNV-1a, 64 bits, over the checksums of the header and of every record in order.
///
/// Each line has a checksum of its own. The seal protects the number, the order and the completeness of the lines.
struct SealHash {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ checksum: UInt32) {
    var rest = checksum
    // The checksum is hashed byte by byte, least significant byte first, because the file format defines this order.
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

  /// Returns `count` bytes from an offset, or fewer if the file ends earlier.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    switch self {
    case .data(let data):
      // A read from an offset behind the end of the bytes returns no bytes and no error, as a read of a file does.
      let start = min(offset, data.count)
      return data[(data.startIndex + start)..<(data.startIndex + start + min(count, data.count - start))]
    case .file(let file): return try file.read(at: offset, count: count)
    }
  }

  /// Returns the size of the main file in bytes.
  func size() throws(RepositoryError) -> Int {
    switch self {
    case .data(let data): data.count
    case .file(let file): try file.size()
    }
  }
}
