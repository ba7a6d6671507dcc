internal import Foundation

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
