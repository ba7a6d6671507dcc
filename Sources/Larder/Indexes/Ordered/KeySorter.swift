internal import Foundation
internal import Synchronization

/// Sorts the keys of an index, and keeps only a part of them in memory.
///
/// When the keys in memory are longer than a limit, they become one sorted run in a scratch file. So the memory of a build does not grow
/// with the number of records.
struct KeySorter {
  private var keys = UnsortedKeys()
  private var runs: [ScratchRun] = []
  private let scratch: ScratchFile?
  /// Size in bytes beyond which the keys in memory become a run.
  private let limit: Int

  /// - Parameters:
  ///   - limit: Number of bytes that may stay in memory.
  ///   - scratch: File for the other keys, or `nil` to keep all keys in memory.
  init(limit: Int, scratch: ScratchFile?) { (self.limit, self.scratch) = (limit, scratch) }

  /// Adds keys of further records.
  ///
  /// - Throws: The errors of writing the scratch file.
  mutating func add(_ other: UnsortedKeys) throws(RepositoryError) {
    keys.append(other)
    if let scratch, keys.byteCount > limit { try writeRun(to: scratch) }
  }

  /// Returns all keys that were added.
  func finish() -> SortedKeys { SortedKeys(inMemory: keys.sorted(), runs: runs, scratch: scratch) }

  private mutating func writeRun(to scratch: ScratchFile) throws(RepositoryError) {
    let sorted = keys.sorted()
    keys = UnsortedKeys()
    runs.append(ScratchRun(place: try scratch.append(sorted), checksum: sorted.withUnsafeBytes { CRC32C.checksum($0) }))
  }
}

/// Keys in one array, each behind its length in two bytes.
struct UnsortedKeys: Sendable {
  private var bytes: [UInt8] = []
  private var places: [Place] = []
  /// Largest size of a key in bytes.
  static let longestKey = IndexKey.limit
  /// Size in bytes of the length before a key.
  static let lengthSize = 2

  /// A key, by its first bytes as a number, so that most comparisons read no other bytes.
  private struct Place {
    var head: (UInt64, UInt64) = (0, 0)
    /// Offset of the key's length.
    var offset: Int
  }

  var byteCount: Int { bytes.count }

  /// Adds the key of an entry, or returns false if the key is longer than ``longestKey``.
  mutating func append(_ entry: IndexEntry) -> Bool {
    var place = Place(offset: bytes.count)
    let start = place.offset + Self.lengthSize
    bytes += [0, 0]
    IndexKey.append(entry, to: &bytes)
    guard bytes.count - start <= Self.longestKey else { return false }
    withUnsafeMutableBytes(of: &place.head) { head in
      bytes.withUnsafeBytes { head.copyMemory(from: .init(rebasing: $0[start...].prefix(head.count))) }
    }
    place.head = (place.head.0.bigEndian, place.head.1.bigEndian)
    let length = bytes.count - start
    (bytes[place.offset], bytes[place.offset + 1]) = (UInt8(length & 0xFF), UInt8(length >> 8))
    places.append(place)
    return true
  }

  mutating func append(_ other: UnsortedKeys) {
    let start = bytes.count
    bytes += other.bytes
    places += other.places.lazy.map { Place(head: $0.head, offset: start + $0.offset) }
  }

  /// Returns the bytes of the keys in order, each behind its length.
  func sorted() -> [UInt8] {
    bytes.withUnsafeBytes { bytes in
      func key(_ place: Place) -> UnsafeRawBufferPointer {
        let length = Int(bytes[place.offset]) + Int(bytes[place.offset + 1]) << 8
        return UnsafeRawBufferPointer(rebasing: bytes[place.offset...].prefix(Self.lengthSize + length))
      }
      let order = places.sorted { left, right in
        if left.head != right.head { return left.head < right.head }
        return key(left).dropFirst(Self.lengthSize).precedes(key(right).dropFirst(Self.lengthSize))
      }
      var sorted: [UInt8] = []
      sorted.reserveCapacity(bytes.count)
      for place in order { sorted.append(contentsOf: key(place)) }
      return sorted
    }
  }
}

/// Sorted keys in a scratch file.
struct ScratchRun: Sendable {
  let place: Range<Int>
  /// Checksum of the bytes at the place.
  let checksum: UInt32
}

/// A file for the runs of the sorters of one build, which is gone when the build ends or the process is killed.
final class ScratchFile: Sendable {
  private let file: any OpenFile
  private let end = Mutex(0)

  /// - Parameter file: An empty file that no path leads to.
  init(_ file: any OpenFile) { self.file = file }

  /// Appends bytes, and returns their place.
  ///
  /// After an error, the file gives its space back, because commits need the rest of a full disk.
  func append(_ bytes: [UInt8]) throws(RepositoryError) -> Range<Int> {
    try end.withLock { (end) throws(RepositoryError) in
      let start = end
      do throws(RepositoryError) {
        try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: start) }
      } catch {
        do throws(RepositoryError) { try file.cut(to: 0) } catch {}
        throw error
      }
      end = start + bytes.count
      return start..<end
    }
  }

  /// Returns the bytes at a place that was written.
  func read(_ place: Range<Int>) throws(RepositoryError) -> Data {
    let bytes = try file.read(at: place.lowerBound, count: place.count)
    guard bytes.count == place.count else { throw .damagedScratchFile }
    return bytes
  }
}

extension RepositoryError {
  /// The error for keys in a scratch file that differ from those that the process wrote.
  static var damagedScratchFile: RepositoryError {
    RepositoryError(.inputOutput, "expected the keys in a scratch file that this process wrote, found others; run the query again")
  }
}
