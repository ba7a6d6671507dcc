internal import Foundation
internal import Larder
internal import Synchronization

/// An open file of a ``FaultyFileSystem``.
final class FaultyFile: OpenFile {
  private let base: any OpenFile
  private let system: FaultyFileSystem
  private let role: String
  private let identity: FileIdentity?
  /// The number of failed syncs of the file that this descriptor has heard of.
  private let heardOf: Atomic<Int>

  init(_ base: any OpenFile, _ system: FaultyFileSystem, _ role: String) {
    self.base = base
    self.system = system
    self.role = role
    identity = base.identity
    heardOf = Atomic(system.syncFailures(of: identity))
  }

  var path: String { base.path }

  private func perform<Output: Sendable>(
    _ call: SeamCall, size: Int = 0, short: (() throws(RepositoryError) -> Output)? = nil, _ body: () throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    try system.perform(call, path, role, size: size, short: short, body)
  }

  func status() throws(RepositoryError) -> FileStatus {
    try perform(.fileStatus) { () throws(RepositoryError) in try base.status().owned }
  }
  func lock() throws(RepositoryError) { try perform(.fileLock) { () throws(RepositoryError) in try base.lock() } }
  func setOwner(_ owner: FileOwner) throws(RepositoryError) {
    try perform(.setOwner) { () throws(RepositoryError) in try base.setOwner(owner) }
  }
  func size() throws(RepositoryError) -> Int { try perform(.size) { () throws(RepositoryError) in try base.size() } }
  func mode() throws(RepositoryError) -> UInt16 { try perform(.mode) { () throws(RepositoryError) in try base.mode() } }
  func setMode(_ mode: UInt16) throws(RepositoryError) {
    try perform(.setMode) { () throws(RepositoryError) in try base.setMode(mode) }
  }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try perform(
      .read,
      short: { () throws(RepositoryError) in
        let data = try self.base.read(at: offset, count: count)
        // A single byte cannot be read in part.
        return Data(data.prefix(max(1, data.count / 2)))
      }
    ) { () throws(RepositoryError) in try base.read(at: offset, count: count) }
  }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try perform(
      .write, size: bytes.count,
      short: { () throws(RepositoryError) in
        try self.base.write(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)]), at: offset)
      }
    ) { () throws(RepositoryError) in try base.write(bytes, at: offset) }
  }
  func allocate(_ range: Range<Int>) throws(RepositoryError) {
    try perform(.allocate, size: range.count) { () throws(RepositoryError) in try base.allocate(range) }
  }
  func cut(to size: Int) throws(RepositoryError) { try perform(.cut) { () throws(RepositoryError) in try base.cut(to: size) } }
  func sync() throws(RepositoryError) {
    try system.sync(identity, path, role, heardOf: heardOf) { () throws(RepositoryError) in try base.sync() }
  }
  func close() throws(RepositoryError) { try perform(.close) { () throws(RepositoryError) in try base.close() } }
}

extension OpenFile {
  /// The identity of the file, if it can be told.
  fileprivate var identity: FileIdentity? { do throws(RepositoryError) { return try status().identity } catch { return nil } }
}
