// Salvage/ reads the whole records of damaged stores.
// Invariant: a record is saved only if its own checksum matches, and no source is changed. Called by `Repair`.

internal import Foundation
internal import Larder

/// Bytes of a damaged file, with zeros in the place of blocks that the disk cannot read.
struct SalvageBytes {
  /// Path of the file.
  let path: String
  let bytes: [UInt8]
  /// Ranges of bytes that could not be read.
  let unreadable: [Range<Int>]

  /// Size of the pieces in which a file is read that cannot be read as a whole.
  private static let pieceSize = 4_096

  /// Reads a file.
  ///
  /// Returns `nil` if there is none.
  init?(_ path: String, _ fileSystem: any FileSystem = POSIXFileSystem()) throws(RepositoryError) {
    guard let file = try fileSystem.open(path, writable: false) else { return nil }
    defer { do throws(RepositoryError) { try file.close() } catch {} }  // nothing was written
    self.path = path
    let size = try file.size()
    do throws(RepositoryError) {
      bytes = [UInt8](try file.read(at: 0, count: size))
      unreadable = []
      return
    } catch {
      // Only an error of the disk can concern one part of the file and not the others.
      guard error.code == .inputOutput else { throw error }
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    var unreadable: [Range<Int>] = []
    while bytes.count < size {
      let count = min(Self.pieceSize, size - bytes.count)
      do throws(RepositoryError) {
        let piece = try file.read(at: bytes.count, count: count)
        bytes += piece
        // The file has become shorter since its size was read.
        if piece.count < count { break }
      } catch {
        // Adjacent pieces become one range, and one line of the report.
        let start = unreadable.last?.upperBound == bytes.count ? unreadable.removeLast().lowerBound : bytes.count
        unreadable.append(start..<(bytes.count + count))
        // Zeros keep the offsets of everything after the gap.
        bytes += [UInt8](repeating: 0, count: count)
      }
    }
    (self.bytes, self.unreadable) = (bytes, unreadable)
  }

  init(path: String, bytes: [UInt8]) { (self.path, self.bytes, unreadable) = (path, bytes, []) }

  /// Problems for the ranges that the disk could not read.
  var problems: [SalvageProblem] {
    unreadable.map {
      SalvageProblem(
        path, offset: $0.lowerBound, "the disk could not read \(counted($0.count, "byte")): copy the disk before it gets worse",
        isLoss: false)
    }
  }
}

extension [UInt8] {
  /// Returns the little-endian number at an offset.
  ///
  /// `nil` if it does not lie within the bytes.
  func number<Number: FixedWidthInteger>(_: Number.Type = Number.self, at offset: Int) -> Number? {
    guard offset >= 0, offset + MemoryLayout<Number>.size <= count else { return nil }
    return withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
  }

  /// Returns the big-endian number at an offset.
  ///
  /// `nil` if it does not lie within the bytes.
  func bigEndian<Number: FixedWidthInteger>(_ type: Number.Type = Number.self, at offset: Int) -> Number? {
    number(type, at: offset)?.byteSwapped
  }

  /// Returns true if a text is at an offset.
  func holds(_ text: StaticString, at offset: Int) -> Bool {
    guard offset >= 0, offset + text.utf8CodeUnitCount <= count else { return false }
    return withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return false }
      return memcmp(base + offset, text.utf8Start, text.utf8CodeUnitCount) == 0
    }
  }

  /// Returns the first offset in a range at which a text lies as a whole.
  ///
  /// `nil` if there is none.
  func offset(of text: StaticString, in range: Range<Int>) -> Int? {
    var position = range.lowerBound
    let end = Swift.min(range.upperBound, count) - text.utf8CodeUnitCount
    let first = Int32(text.utf8Start.pointee)
    while position <= end {
      let found = withUnsafeBytes { bytes -> Int? in
        // `memchr` finds the first byte much faster than a loop, and a damaged file is searched many times.
        guard let base = bytes.baseAddress, let found = memchr(base + position, first, end + 1 - position) else { return nil }
        return base.distance(to: UnsafeRawPointer(found))
      }
      guard let found else { return nil }
      if holds(text, at: found) { return found }
      position = found + 1
    }
    return nil
  }
}
