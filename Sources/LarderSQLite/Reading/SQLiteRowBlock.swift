internal import Dispatch
internal import Foundation
internal import Larder
internal import Synchronization

/// A block of rows of one collection, as SQLite returned them and before their checksums are compared.
struct SQLiteRowBlock: Sendable {
  private struct Row: Sendable {
    let revision: Int64
    let schemaVersion: Int
    let crc: UInt32
    /// Offset of the row's key in the block's bytes.
    ///
    /// The row's value follows the key directly.
    let start: Int
    let keyCount: Int
    let valueCount: Int
  }

  private let collection: String
  private let rows: [Row]
  private let bytes: Data

  /// The result of comparing every row of a block with its checksum.
  struct Checked: Sendable {
    let pack: RecordPack
    /// Records whose checksums do not match, without their values.
    let damaged: [StoredRecord]
  }

  /// Compares every row of the block with its checksum, and copies the rows that match into a `RecordPack`.
  func checked(_ limits: StoreOptions.Limits?) -> Checked {
    var packer = RecordPacker(collection, limits: limits, capacity: bytes.count, recordCapacity: rows.count)
    var damaged: [StoredRecord] = []
    // The bytes of the collection's name are made once for all rows, because the checksum of every row begins with them.
    let name = Array(collection.utf8)
    bytes.withUnsafeBytes { bytes in
      for row in rows {
        let keyBytes = UnsafeRawBufferPointer(rebasing: bytes[row.start..<row.start + row.keyCount])
        let end = row.start + row.keyCount + row.valueCount
        let value = UnsafeRawBufferPointer(rebasing: bytes[row.start + row.keyCount..<end])
        // Decoding a key replaces bytes that are not UTF-8. If a key has bytes that are not UTF-8, the comparison of the key's length or of
        // the row's checksum below fails.
        let key = RecordKey(utf8: keyBytes)
        var crc = name.withUnsafeBytes { name in
          key.withChecksummedBytes(keyBytes) { key in
            StoredRecord.checksum(
              name, key: key, revision: UInt64(bitPattern: row.revision), schemaVersion: row.schemaVersion, hasValue: true)
          }
        }
        crc.update(value)
        let revision = Revision(UInt64(bitPattern: row.revision))
        if crc.value == row.crc && key.byteCount == keyBytes.count && row.revision >= 0 {
          packer.append(key, revision: revision, schemaVersion: row.schemaVersion, value: value)
        } else {
          damaged.append(
            StoredRecord(collection: collection, key: key, revision: revision, schemaVersion: row.schemaVersion, value: Data()))
        }
      }
    }
    return Checked(pack: packer.finish(), damaged: damaged)
  }

  /// A check of one block of rows that runs on another core while the calling thread reads the next blocks.
  final class Checking: Sendable {
    private let outcome = Mutex<Checked?>(nil)
    private let isDone = DispatchSemaphore(value: 0)

    /// Starts the check of a block on a queue, or checks the block at once if `queue` is `nil`.
    init(_ block: SQLiteRowBlock, _ limits: StoreOptions.Limits?, on queue: DispatchQueue?) {
      let check = { @Sendable [self] in
        let checked = block.checked(limits)
        outcome.withLock { $0 = checked }
        isDone.signal()
      }
      if let queue { queue.async(execute: check) } else { check() }
    }

    /// Waits until the block is checked, and returns the result.
    ///
    /// Call `result()` only once, because a check signals its end only once, and a second call would wait forever.
    func result() -> Checked {
      while true {
        isDone.wait()
        if let checked = outcome.withLock({ $0 }) { return checked }
      }
    }
  }

  /// A block of rows that is still being filled.
  struct Draft {
    private let collection: String
    private let start: UnsafeMutableRawPointer
    private let bytes: Data
    private var used = 0
    private var rows: [Row] = []
    /// Bytes of a row that is longer than a whole block.
    ///
    /// A row that is longer than a block is the only row in its block.
    private var large: Data?

    init(_ collection: String, capacity: Int, file: String) throws(RepositoryError) {
      // The memory of the block is not filled with zeros, because the rows would soon overwrite the zeros.
      guard let start = malloc(capacity) else {
        throw RepositoryError(.inputOutput, "there is no memory for reading records: free some memory, and try again", file: file)
      }
      self.collection = collection
      self.start = start
      // No code reads the uninitialized part of the memory, because `finish()` returns only the bytes that were written.
      bytes = Data(bytesNoCopy: start, count: capacity, deallocator: .free)
      rows.reserveCapacity(1_024)
    }

    /// Whether the block has space for a row of `count` bytes.
    ///
    /// The result is true for the first row of a block, even if the row is longer than the block.
    func hasSpace(for count: Int) -> Bool { rows.isEmpty || (large == nil && used + count <= bytes.count) }

    mutating func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, revision: Int64, schemaVersion: Int64, crc: UInt32)
    {
      rows.append(
        Row(
          revision: revision, schemaVersion: Int(clamping: schemaVersion), crc: crc, start: used, keyCount: key.count,
          valueCount: value.count))
      // Only the first row of a block can be longer than the block, because `hasSpace(for:)` refuses any later row of that length.
      if used + key.count + value.count > bytes.count {
        large = Data(key) + Data(value)
        return
      }
      // The buffer of an empty key or value may have no address, and an empty buffer has nothing to copy.
      if let source = key.baseAddress { (start + used).copyMemory(from: source, byteCount: key.count) }
      if let source = value.baseAddress { (start + used + key.count).copyMemory(from: source, byteCount: value.count) }
      used += key.count + value.count
    }

    func finish() -> SQLiteRowBlock { SQLiteRowBlock(collection: collection, rows: rows, bytes: large ?? bytes.prefix(used)) }
  }
}
