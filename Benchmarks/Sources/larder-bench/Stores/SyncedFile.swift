import Foundation
import Synchronization

/// Appending to an allocated file and syncing it: what a durable save cannot be faster than.
final class SyncedFile: Sendable {
  private let descriptor: Int32
  private let end = Mutex(0)
  private let size = 64 << 20

  init(in directory: URL) throws {
    let path = directory.appendingPathComponent("synced").path
    descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { throw BenchError("expected to create \(path), found error \(errno)") }
    // Written once, so that a sync has no blocks to note: a journal of Larder's is allocated ahead too.
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    for piece in 0..<(size >> 20) {
      guard pwrite(descriptor, zeros, zeros.count, off_t(piece << 20)) == zeros.count else {
        throw BenchError("expected to write \(path), found error \(errno)")
      }
    }
    try sync()
  }

  deinit { close(descriptor) }

  func append(_ bytes: [UInt8]) throws {
    try end.withLock { end in
      if end + bytes.count > size { end = 0 }
      guard pwrite(descriptor, bytes, bytes.count, off_t(end)) == bytes.count else {
        throw BenchError("expected to write a file, found error \(errno)")
      }
      end += bytes.count
      try sync()
    }
  }

  private func sync() throws {
    #if canImport(Darwin)
      let result = fcntl(descriptor, F_FULLFSYNC)
    #else
      let result = fdatasync(descriptor)
    #endif
    guard result == 0 else { throw BenchError("expected to sync a file, found error \(errno)") }
  }
}

/// The bytes of a record, encoded before, of which the population changes: contenders that do not encode write what the others do.
struct ReadyRecord: Sendable {
  let id: String
  private var bytes: [UInt8]
  private let offset: Int

  init<Record: Encodable>(id: String, _ record: Record, population: Int) throws {
    self.id = id
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let encoded = Array(try encoder.encode(record))
    let digits = Array(String(population).utf8)
    guard let place = encoded.indices.first(where: { encoded[$0...].starts(with: digits) }) else {
      throw BenchError("expected \(population) in a record, found it nowhere")
    }
    (bytes, offset) = (encoded, place)
  }

  func bytes(_ round: Int) -> [UInt8] {
    var (bytes, rest) = (bytes, 1_000_000 + round % 8_000_000)
    for place in stride(from: offset + 6, through: offset, by: -1) {
      bytes[place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
    return bytes
  }
}
