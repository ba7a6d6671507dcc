internal import Dispatch
internal import Foundation
internal import Larder
internal import Synchronization

/// A block of rows of one collection as they were read, before their checksums are compared.
struct SQLiteRowBlock: Sendable {
  private struct Row: Sendable {
    let revision: Int64
    let schemaVersion: Int
    let crc: UInt32
    /// Offset of the row's key in the block's bytes, directly before its value.
    let start: Int
    let keyCount: Int
    let valueCount: Int
  }

  private let collection: String
  private let rows: [Row]
  private let bytes: Data

  /// The result of comparing every row with its checksum.
  struct Checked: Sendable {
    let pack: RecordPack
    /// Records whose checksums do not match, without their values.
    let damaged: [StoredRecord]
  }

  /// Compares every row with its checksum, and packs the rows that match.
  func checked(_ limits: StoreOptions.Limits?) -> Checked {
    var packer = RecordPacker(collection, limits: limits, capacity: bytes.count, recordCapacity: rows.count)
    var damaged: [StoredRecord] = []
    // Made once: the checksum of every row begins with the collection's name.
    let name = Array(collection.utf8)
    bytes.withUnsafeBytes { bytes in
      for row in rows {
        let keyBytes = UnsafeRawBufferPointer(rebasing: bytes[row.start..<row.start + row.keyCount])
        let end = row.start + row.keyCount + row.valueCount
        let value = UnsafeRawBufferPointer(rebasing: bytes[row.start + row.keyCount..<end])
        // Bytes that are not UTF-8 are repaired to other bytes here, which the length or the checksum below reveals.
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

  /// A check of one block on another core, while the next blocks are read.
  final class Checking: Sendable {
    private let outcome = Mutex<Checked?>(nil)
    private let isDone = DispatchSemaphore(value: 0)

    /// Begins the check on a queue, or checks at once without one.
    init(_ block: SQLiteRowBlock, _ limits: StoreOptions.Limits?, on queue: DispatchQueue?) {
      let check = { @Sendable [self] in
        let checked = block.checked(limits)
        outcome.withLock { $0 = checked }
        isDone.signal()
      }
      if let queue { queue.async(execute: check) } else { check() }
    }

    /// Waits for the check and returns its result.
    ///
    /// Call it once.
    func result() -> Checked {
      while true {
        isDone.wait()
        if let checked = outcome.withLock({ $0 }) { return checked }
      }
    }
  }

  /// A block into which rows are being read.
  struct Draft {
    private let collection: String
    private let start: UnsafeMutableRawPointer
    private let bytes: Data
    private var used = 0
    private var rows: [Row] = []
    /// Bytes of a row that is longer than a block, and alone in it.
    private var large: Data?

    init(_ collection: String, capacity: Int, file: String) throws(RepositoryError) {
      // Uninitialized memory: zeros would be written first, only for the rows to replace them.
      guard let start = malloc(capacity) else {
        throw RepositoryError(.inputOutput, "there is no memory for reading records: free some memory, and try again", file: file)
      }
      self.collection = collection
      self.start = start
      // The data is passed on only after its bytes were written.
      bytes = Data(bytesNoCopy: start, count: capacity, deallocator: .free)
      rows.reserveCapacity(1_024)
    }

    /// Whether a row of `count` bytes fits.
    ///
    /// The first row always does.
    func hasSpace(for count: Int) -> Bool { rows.isEmpty || (large == nil && used + count <= bytes.count) }

    mutating func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, revision: Int64, schemaVersion: Int64, crc: UInt32)
    {
      rows.append(
        Row(
          revision: revision, schemaVersion: Int(clamping: schemaVersion), crc: crc, start: used, keyCount: key.count,
          valueCount: value.count))
      // Only the first row of a block comes here: `hasSpace(for:)` refuses any other of that size.
      if used + key.count + value.count > bytes.count {
        large = Data(key) + Data(value)
        return
      }
      // An empty key or value may have no address.
      if let source = key.baseAddress { (start + used).copyMemory(from: source, byteCount: key.count) }
      if let source = value.baseAddress { (start + used + key.count).copyMemory(from: source, byteCount: value.count) }
      used += key.count + value.count
    }

    func finish() -> SQLiteRowBlock { SQLiteRowBlock(collection: collection, rows: rows, bytes: large ?? bytes.prefix(used)) }
  }
}
