internal import Foundation

/// Records of one collection as a backend has read them, with their keys and values in one block of memory.
package struct RecordPack: Sendable {
  /// Collection of all records in the pack.
  package let collection: String
  let records: [PackedRecord]
  /// Keys and values, one after the other.
  let block: Data
  /// Values that are too long for the block, by position.
  let large: [Int: Data]
  /// Records over a limit, by position, whose values are not in the block.
  let refused: [(position: Int, slot: RecordSlot, error: RepositoryError)]
  /// Whether the keys ascend.
  let isSorted: Bool
  /// Oldest and newest schema version, or the largest integer and 0 without records.
  let versions: (oldest: Int, newest: Int)

  /// Number of records.
  package var count: Int { records.count }

  /// Returns the key at a position.
  func key(at position: Int) -> RecordKey {
    let record = records[position]
    return record.isKeyedByNumber ? RecordKey(record.number) : withKeyText(at: position) { RecordKey(utf8: $0) }
  }

  /// Calls a closure with the text of a key that is no UUID.
  func withKeyText<R>(at position: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    block.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[records[position].keyText])) }
  }

  /// Returns the value at a position, as a slice that keeps the block in memory.
  func value(at position: Int) -> Data {
    let record = records[position]
    if record.count == .max { return large[position] ?? Data() }
    let range = record.value
    // An empty slice would keep the block in memory for nothing.
    return range.isEmpty ? Data() : block[(block.startIndex + range.lowerBound)..<(block.startIndex + range.upperBound)]
  }

  /// Calls a closure with each record, as a backend that has no packs does.
  ///
  /// Only for packs without limits, which refuse no record.
  package func forEach<Failure>(_ visit: (StoredRecord) throws(Failure) -> Void) throws(Failure) {
    for (position, record) in records.enumerated() {
      try visit(
        StoredRecord(
          collection: collection, key: key(at: position), revision: Revision(record.revision), schemaVersion: Int(record.schemaVersion),
          value: value(at: position)))
    }
  }
}

/// The records that a backend hands over while it opens a store: a single one, or a pack of many.
///
/// A pack spares an object for each record.
package enum LoadedRecords: Sendable {
  case pack(RecordPack)
  /// A record or a tombstone.
  case record(StoredRecord)

  /// Calls a closure with each record and tombstone.
  ///
  /// Only for packs without limits.
  package func forEach(_ visit: (StoredRecord) -> Void) {
    switch self {
    case .pack(let pack): pack.forEach(visit)
    case .record(let record): visit(record)
    }
  }
}

/// A backend that hands over packs of records while it opens a store.
package protocol PackingBackend: StorageBackend {
  /// Opens the store as ``StorageBackend/open(_:_:)`` does, and may hand over packs.
  ///
  /// The limits of the options decide which records of a pack are refused.
  func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport
}

/// A builder of one ``RecordPack`` that copies records of a collection into one block of memory.
package struct RecordPacker {
  private let collection: String
  private let limits: StoreOptions.Limits?
  private var records: [PackedRecord] = []
  private var refused: [(position: Int, slot: RecordSlot, error: RepositoryError)] = []
  private var block: Block
  private var isSorted = true
  private var last: RecordKey?
  private var versions = (oldest: Int.max, newest: 0)
  /// Values that are too long for the 32-bit offsets of the block, by position.
  private var large: [Int: Data] = [:]
  private static let largeSize = 1 << 30

  /// Makes a packer for the records of a collection.
  ///
  /// - Parameters:
  ///   - limits: Limits that records must keep. Without limits no record is refused.
  ///   - capacity: Number of bytes that are expected. More are accepted.
  package init(_ collection: String, limits: StoreOptions.Limits?, capacity: Int, recordCapacity: Int = 0) {
    (self.collection, self.limits) = (collection, limits?.holding(for: collection))
    block = Block(capacity: capacity)
    records.reserveCapacity(recordCapacity)
  }

  package var isEmpty: Bool { records.isEmpty }
  /// Number of bytes of keys and values that were added so far.
  package var byteCount: Int { block.count }

  /// Adds a record.
  package mutating func append(_ key: RecordKey, revision: Revision, schemaVersion: Int, value: UnsafeRawBufferPointer) {
    // Ascending keys prove that none comes twice, which spares the opening a table.
    if isSorted, let last, !(last < key) { isSorted = false }
    last = key
    versions = (min(versions.oldest, schemaVersion), max(versions.newest, schemaVersion))
    // The value of a record over a limit stays with the backend and takes no memory.
    let refusal = limits.flatMap { RecordLimit.violation(of: $0, key: key, value: value) }
    if let refusal {
      let slot = RecordSlot(key: key, revision: revision, schemaVersion: schemaVersion, refusedFor: refusal)
      refused.append((records.count, slot, refusal))
    }
    let number = key.number
    // The description of a record holds a UUID itself, so its text is not stored.
    if number == nil { key.withBytes { block.append($0) } }
    let start = block.count
    // Offsets in the block have 32 bits, which a few values of 1 GiB would exhaust.
    let isLarge = refusal == nil && value.count >= Self.largeSize
    if isLarge {
      large[records.count] = Data(value)
    } else if refusal == nil {
      block.append(value)
    }
    records.append(
      PackedRecord(
        number: number ?? .zero, revision: revision.number, start: UInt32(truncatingIfNeeded: start),
        count: isLarge ? .max : UInt32(truncatingIfNeeded: block.count - start), schemaVersion: Int32(clamping: schemaVersion),
        keyCount: number == nil ? Int32(truncatingIfNeeded: key.byteCount) : -1))
  }

  /// Ends the packing and returns the pack.
  package consuming func finish() -> RecordPack {
    RecordPack(
      collection: collection, records: records, block: block.finish(), large: large, refused: refused, isSorted: isSorted,
      versions: versions)
  }

  /// A growing block of memory that only its packer writes to, until it is lent as `Data`.
  private final class Block {
    private var start: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
      self.capacity = max(capacity, 64)
      start = Self.memory(of: self.capacity)
    }

    deinit { free(start) }

    /// Returns memory, and traps without memory as an array does.
    private static func memory(of size: Int) -> UnsafeMutableRawPointer { malloc(size) ?? .allocate(byteCount: size, alignment: 1) }

    func append(_ bytes: UnsafeRawBufferPointer) {
      guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
      if count + bytes.count > capacity { resize(to: max(2 * capacity, count + bytes.count)) }
      (start + count).copyMemory(from: source, byteCount: bytes.count)
      count += bytes.count
    }

    /// Returns the bytes as `Data` that keeps the block alive, and gives unused memory back.
    func finish() -> Data {
      // A pack may live as long as the store is open, so unused memory is given back. A size of zero would free the block.
      if capacity - count > capacity / 16 { resize(to: max(count, 1)) }
      // The closure holds this object, whose `deinit` frees the memory.
      return Data(bytesNoCopy: start, count: count, deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
    }

    private func resize(to size: Int) {
      // Without memory for the smaller block, the larger one stays.
      guard let moved = realloc(start, size) else {
        guard size > capacity else { return }
        let moved = Self.memory(of: size)
        moved.copyMemory(from: start, byteCount: count)
        free(start)
        (start, capacity) = (moved, size)
        return
      }
      (start, capacity) = (moved, size)
    }
  }
}
