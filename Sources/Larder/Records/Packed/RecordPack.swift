internal import Foundation

/// Records of one collection as a backend has read them, with their keys and values in one block of memory.
package struct RecordPack: Sendable {
  /// Name of the collection of all records in the pack.
  package let collection: String
  let records: [PackedRecord]
  /// Keys and values of the records, one after the other.
  let block: Data
  /// Values that are too long for the block, by the position of their record.
  let large: [Int: Data]
  /// Records over a limit of the store's options, by position, whose values are not in the block.
  let refused: [(position: Int, slot: RecordSlot, error: RepositoryError)]
  /// Whether the keys of the records ascend.
  let isSorted: Bool
  /// Oldest and newest schema version of the records, or the largest integer and 0 if there are no records.
  let versions: (oldest: Int, newest: Int)

  /// Number of records in the pack.
  package var count: Int { records.count }

  /// Returns the key of the record at a position.
  func key(at position: Int) -> RecordKey {
    let record = records[position]
    return record.isKeyedByNumber ? RecordKey(record.number) : withKeyText(at: position) { RecordKey(utf8: $0) }
  }

  /// Calls a closure with the text of the key of the record at a position, which must not be the key of a UUID.
  func withKeyText<R>(at position: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    block.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[records[position].keyText])) }
  }

  /// Returns the value of the record at a position, as a slice that keeps the block in memory.
  func value(at position: Int) -> Data {
    let record = records[position]
    if record.count == .max { return large[position] ?? Data() }
    let range = record.value
    // An empty slice of the block would keep the whole block in memory.
    return range.isEmpty ? Data() : block[(block.startIndex + range.lowerBound)..<(block.startIndex + range.upperBound)]
  }

  /// Calls a closure with each record of the pack, as a `StoredRecord`, the form in which other backends pass records on.
  ///
  /// Call `forEach` only on a pack that was made without limits, because a record over a limit has no value in the pack.
  package func forEach<Failure>(_ visit: (StoredRecord) throws(Failure) -> Void) throws(Failure) {
    for (position, record) in records.enumerated() {
      try visit(
        StoredRecord(
          collection: collection, key: key(at: position), revision: Revision(record.revision), schemaVersion: Int(record.schemaVersion),
          value: value(at: position)))
    }
  }
}

/// Records that a backend passes on while it opens a store: a single record, or a pack of many records.
///
/// With a pack, a backend need not make a ``StoredRecord`` for each record.
package enum LoadedRecords: Sendable {
  case pack(RecordPack)
  /// A single record or a tombstone.
  case record(StoredRecord)

  /// Calls a closure with each record and tombstone.
  ///
  /// Call `forEach` only for packs that were made without limits, because a record over a limit has no value in its pack.
  package func forEach(_ visit: (StoredRecord) -> Void) {
    switch self {
    case .pack(let pack): pack.forEach(visit)
    case .record(let record): visit(record)
    }
  }
}

/// A backend that passes on packs (blocks of many records) while it opens a store.
package protocol PackingBackend: StorageBackend {
  /// Opens the store as ``StorageBackend/open(_:_:)`` does, and may pass records to `visit` in packs.
  ///
  /// A record that is over a limit of the options is refused: its pack holds the error and not the record's value.
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
  /// Values that are too long for the 32-bit offsets of the block, by the position of their record.
  private var large: [Int: Data] = [:]
  private static let largeSize = 1 << 30

  /// Makes a packer for the records of a collection.
  ///
  /// - Parameters:
  ///   - limits: Limits that records must keep. If `limits` is `nil`, the packer accepts every record.
  ///   - capacity: Expected number of bytes of keys and values. The packer also accepts more bytes than `capacity`.
  package init(_ collection: String, limits: StoreOptions.Limits?, capacity: Int, recordCapacity: Int = 0) {
    (self.collection, self.limits) = (collection, limits?.holding(for: collection))
    block = Block(capacity: capacity)
    records.reserveCapacity(recordCapacity)
  }

  package var isEmpty: Bool { records.isEmpty }
  /// Number of bytes of keys and values that were added so far.
  package var byteCount: Int { block.count }

  /// Adds a record to the pack.
  package mutating func append(_ key: RecordKey, revision: Revision, schemaVersion: Int, value: UnsafeRawBufferPointer) {
    // Ascending keys prove that no key occurs twice. If the keys ascend, opening a store needs no table of keys to find duplicates.
    if isSorted, let last, !(last < key) { isSorted = false }
    last = key
    versions = (min(versions.oldest, schemaVersion), max(versions.newest, schemaVersion))
    // The value of a record over a limit stays in the backend's files only and takes no memory.
    let refusal = limits.flatMap { RecordLimit.violation(of: $0, key: key, value: value) }
    if let refusal {
      let slot = RecordSlot(key: key, revision: revision, schemaVersion: schemaVersion, refusedFor: refusal)
      refused.append((records.count, slot, refusal))
    }
    let number = key.number
    // `PackedRecord` holds a UUID as a number, so only the text of other keys is stored in the block.
    if number == nil { key.withBytes { block.append($0) } }
    let start = block.count
    // Offsets in the block have 32 bits, and a few values of 1 GiB would exceed them. A value of 1 GiB or more is kept outside the block,
    // so that the offsets stay below 2^32.
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

  /// A growing block of memory that only its packer writes to, until the bytes of the block are passed on as `Data`.
  private final class Block {
    private var start: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
      self.capacity = max(capacity, 64)
      start = Self.memory(of: self.capacity)
    }

    deinit { free(start) }

    /// Returns memory of the given size, and traps if the system has no memory, as Swift's `Array` does.
    private static func memory(of size: Int) -> UnsafeMutableRawPointer { malloc(size) ?? .allocate(byteCount: size, alignment: 1) }

    func append(_ bytes: UnsafeRawBufferPointer) {
      guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
      if count + bytes.count > capacity { resize(to: max(2 * capacity, count + bytes.count)) }
      (start + count).copyMemory(from: source, byteCount: bytes.count)
      count += bytes.count
    }

    /// Returns the bytes as `Data` that keeps the block alive, and gives unused memory back to the system.
    func finish() -> Data {
      // A pack may live as long as the store is open, so unused memory is given back. `max` prevents `realloc` to zero bytes, which would
      // free the block.
      if capacity - count > capacity / 16 { resize(to: max(count, 1)) }
      // The deallocator holds this block object, so the memory is freed by its `deinit` only after the `Data` is released.
      return Data(bytesNoCopy: start, count: count, deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
    }

    private func resize(to size: Int) {
      // If the system has no memory for a smaller block, the larger block is kept.
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
