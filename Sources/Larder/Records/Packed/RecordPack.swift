internal import Foundation

/// A run of records of one collection, packed as a backend has read them.
package struct RecordPack: Sendable {
  /// The collection of all of them.
  package let collection: String
  let records: [PackedRecord]
  /// The keys and values, one after the other.
  let block: Data
  /// The values that are not in the block because of their size, by position.
  let large: [Int: Data]
  /// The records over a limit by their positions: their values are not in the block.
  let refused: [(position: Int, slot: RecordSlot, error: RepositoryError)]
  /// Whether the keys ascend.
  let isSorted: Bool
  /// The oldest and the newest schema version; the largest number and 0 without records.
  let versions: (oldest: Int, newest: Int)

  /// The number of records.
  package var count: Int { records.count }

  /// Returns the key at a position.
  func key(at position: Int) -> RecordKey {
    let record = records[position]
    return record.isKeyedByNumber ? RecordKey(record.number) : withKeyText(at: position) { RecordKey(utf8: $0) }
  }

  /// Lends the text of a key that is none of a UUID.
  func withKeyText<R>(at position: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    block.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[records[position].keyText])) }
  }

  /// Returns the value at a position: a slice, which keeps the block.
  func value(at position: Int) -> Data {
    let record = records[position]
    if record.count == .max { return large[position] ?? Data() }
    let range = record.value
    return range.isEmpty ? Data() : block[(block.startIndex + range.lowerBound)..<(block.startIndex + range.upperBound)]
  }

  /// Visits the records as backends hand them over one by one; for packs without limits, which refuse none.
  package func forEach<Failure>(_ visit: (StoredRecord) throws(Failure) -> Void) throws(Failure) {
    for (position, record) in records.enumerated() {
      try visit(
        StoredRecord(
          collection: collection, key: key(at: position), revision: Revision(record.revision), schemaVersion: Int(record.schemaVersion),
          value: value(at: position)))
    }
  }
}

/// The records that a backend of whole stores hands over while it opens: one by one, or a pack of them, which spares making each.
package enum LoadedRecords: Sendable {
  case pack(RecordPack)
  /// A record or a tombstone.
  case record(StoredRecord)

  /// Visits each record and tombstone; for packs without limits.
  package func forEach(_ visit: (StoredRecord) -> Void) {
    switch self {
    case .pack(let pack): pack.forEach(visit)
    case .record(let record): visit(record)
    }
  }
}

/// A backend that hands over packs of records while it opens.
package protocol PackingBackend: StorageBackend {
  /// Does what ``StorageBackend/open(_:_:)`` does; the limits of the options decide which records of a pack are refused.
  func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport
}

/// A packer of records of one collection into one block of memory.
package struct RecordPacker {
  private let collection: String
  private let limits: StoreOptions.Limits?
  private var records: [PackedRecord] = []
  private var refused: [(position: Int, slot: RecordSlot, error: RepositoryError)] = []
  private var block: Block
  private var isSorted = true
  private var last: RecordKey?
  private var versions = (oldest: Int.max, newest: 0)
  /// The values that are too long to be counted with others in 32 bits, by position.
  private var large: [Int: Data] = [:]
  private static let largeSize = 1 << 30

  /// Makes a packer.
  ///
  /// - Parameters:
  ///   - limits: What records must keep; without it, none is refused.
  ///   - capacity: The number of bytes that are expected; more are taken.
  package init(_ collection: String, limits: StoreOptions.Limits?, capacity: Int, recordCapacity: Int = 0) {
    (self.collection, self.limits) = (collection, limits?.holding(for: collection))
    block = Block(capacity: capacity)
    records.reserveCapacity(recordCapacity)
  }

  package var isEmpty: Bool { records.isEmpty }
  /// The number of bytes of keys and values so far.
  package var byteCount: Int { block.count }

  /// Adds a record.
  package mutating func append(_ key: RecordKey, revision: Revision, schemaVersion: Int, value: UnsafeRawBufferPointer) {
    if isSorted, let last, !(last < key) { isSorted = false }
    last = key
    versions = (min(versions.oldest, schemaVersion), max(versions.newest, schemaVersion))
    let refusal = limits.flatMap { RecordLimit.violation(of: $0, key: key, value: value) }
    if let refusal {
      let slot = RecordSlot(key: key, revision: revision, schemaVersion: schemaVersion, refusedFor: refusal)
      refused.append((records.count, slot, refusal))
    }
    let number = key.number
    if number == nil { key.withBytes { block.append($0) } }
    let start = block.count
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

  /// Returns the pack; nothing may be added afterwards.
  package consuming func finish() -> RecordPack {
    RecordPack(
      collection: collection, records: records, block: block.finish(), large: large, refused: refused, isSorted: isSorted,
      versions: versions)
  }

  /// A block of memory that grows; only its packer writes it, and nobody once it is lent as `Data`.
  private final class Block {
    private var start: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
      self.capacity = max(capacity, 64)
      start = Self.memory(of: self.capacity)
    }

    deinit { free(start) }

    /// Returns memory; as for any array, there must be some.
    private static func memory(of size: Int) -> UnsafeMutableRawPointer { malloc(size) ?? .allocate(byteCount: size, alignment: 1) }

    func append(_ bytes: UnsafeRawBufferPointer) {
      guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
      if count + bytes.count > capacity { resize(to: max(2 * capacity, count + bytes.count)) }
      (start + count).copyMemory(from: source, byteCount: bytes.count)
      count += bytes.count
    }

    /// Returns the bytes, which keep this; without what is left over.
    func finish() -> Data {
      if capacity - count > capacity / 16 { resize(to: max(count, 1)) }
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
