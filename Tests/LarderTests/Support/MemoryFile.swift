import Foundation
import Larder
import Synchronization

/// A file in memory that may be full, and whose bytes may change after they were written.
final class MemoryFile: OpenFile {
  let path = "/scratch"
  private let limit: Int
  private let flipped: Int?
  private let bytes = Mutex<[UInt8]>([])

  /// - Parameters:
  ///   - limit: Size in bytes that the file cannot exceed.
  ///   - flipped: Offset of a byte that reads otherwise than it was written.
  init(limit: Int = .max, flipped: Int? = nil) { (self.limit, self.flipped) = (limit, flipped) }

  func size() throws(RepositoryError) -> Int { bytes.withLock { $0.count } }
  func mode() throws(RepositoryError) -> UInt16 { 0o600 }
  func setMode(_ mode: UInt16) throws(RepositoryError) {}
  func sync() throws(RepositoryError) {}
  func close() throws(RepositoryError) {}

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    bytes.withLock { bytes in
      var bytes = bytes
      if let flipped, flipped < bytes.count { bytes[flipped] ^= 0x40 }
      return Data(bytes.dropFirst(offset).prefix(count))
    }
  }

  func write(_ new: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try bytes.withLock { (bytes) throws(RepositoryError) in
      guard offset + new.count <= limit else { throw RepositoryError(.full, "the file is full", file: path) }
      bytes += [UInt8](repeating: 0, count: max(0, offset + new.count - bytes.count))
      bytes.replaceSubrange(offset..<offset + new.count, with: new)
    }
  }
}
