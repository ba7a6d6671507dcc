import Foundation

@testable import Larder

/// A file system that makes every checksum in a journal match what it reads: the same as a reader that compares none.
///
/// A mutation for the tests that show that damage would be noticed.
struct ChecksumMendingFiles: FileSystem {
  let base: any FileSystem

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let file = try base.open(path, writable: writable) else { return nil }
    return path.hasSuffix("-journal") && !writable ? MendedFile(base: file) : file
  }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile { try base.create(path) }
  func rename(_ path: String, to newPath: String) throws(RepositoryError) { try base.rename(path, to: newPath) }
  func remove(_ path: String) throws(RepositoryError) { try base.remove(path) }
  func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  func syncDirectory(_ path: String) throws(RepositoryError) { try base.syncDirectory(path) }
  func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  func status(of path: String) throws(RepositoryError) -> FileStatus? { try base.status(of: path) }
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
}

/// A journal as it is read.
private final class MendedFile: OpenFile {
  let base: any OpenFile

  init(base: any OpenFile) { self.base = base }

  var path: String { base.path }
  func size() throws(RepositoryError) -> Int { try base.size() }
  func status() throws(RepositoryError) -> FileStatus { try base.status() }
  func lock() throws(RepositoryError) { try base.lock() }
  func mode() throws(RepositoryError) -> UInt16 { try base.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try base.setMode(mode) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) { try base.write(bytes, at: offset) }
  func sync() throws(RepositoryError) { try base.sync() }
  func close() throws(RepositoryError) { try base.close() }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    var bytes = Array(try base.read(at: offset, count: count))
    guard offset == 0, bytes.count >= JournalFormat.headerSize else { return Data(bytes) }
    let end = JournalFormat.headerSize - 4
    let seed = bytes.checksum(0..<end)
    bytes.set(seed, at: end)
    var position = JournalFormat.headerSize
    while position + JournalFormat.frameHeaderSize <= bytes.count, bytes.number(at: position) == JournalFormat.frameMagic {
      let (payload, size) = (position + JournalFormat.frameHeaderSize, Int(bytes.number(at: position + 4)))
      bytes.set(bytes.checksum(position..<(payload - 4), seed: seed), at: payload - 4)
      guard payload + size + JournalFormat.frameTrailerSize <= bytes.count else { break }
      mendRecords(in: payload..<(payload + size), count: Int(bytes.number(at: position + 32)), &bytes)
      bytes.set(bytes.checksum(payload..<(payload + size), seed: seed), at: payload + size)
      position = payload + size + JournalFormat.frameTrailerSize
    }
    return Data(bytes)
  }

  private func mendRecords(in payload: Range<Int>, count: Int, _ bytes: inout [UInt8]) {
    var position = payload.lowerBound
    for _ in 0..<count {
      let name = position + JournalFormat.operationHeaderSize
      guard name <= payload.upperBound else { return }
      let kind = bytes.number(at: position)
      let key = name + Int(kind >> 1)
      let value = key + Int(bytes.number(at: position + 4))
      let end = value + Int(bytes.number(at: position + 8))
      guard end <= payload.upperBound else { return }
      let revision = UInt64(bytes.number(at: position + 16)) | UInt64(bytes.number(at: position + 20)) << 32
      let record = StoredRecord(
        collection: String(decoding: bytes[name..<key], as: UTF8.self), key: RecordKey(String(decoding: bytes[key..<value], as: UTF8.self)),
        revision: Revision(revision), schemaVersion: Int(bytes.number(at: position + 12)),
        value: kind & 1 == 0 ? nil : Data(bytes[value..<end]))
      bytes.set(record.checksum, at: position + 24)
      position = end
    }
  }
}

extension Array<UInt8> {
  fileprivate func number(at offset: Int) -> UInt32 { withUnsafeBytes { $0.number(at: offset) } }

  fileprivate mutating func set(_ number: UInt32, at offset: Int) {
    for byte in 0..<4 { self[offset + byte] = UInt8(truncatingIfNeeded: number >> (8 * byte)) }
  }

  fileprivate func checksum(_ range: Range<Int>, seed: UInt32 = 0) -> UInt32 {
    withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[range]), seed: seed) }
  }
}
