import Foundation
import Larder
import Synchronization

/// Keeps a store in one file that every commit writes anew: slow for many records, and short enough to read in a sitting.
public nonisolated final class WholeFileBackend: StorageBackend {
  /// The path of the main file.
  public let name: String
  private let fileSystem = POSIXFileSystem()
  private let state = Mutex<State?>(nil)

  private struct State: Sendable {
    var contents: Contents
    let options: StoreOptions
    let lock: any HeldLock
    /// The failure after which nobody knows what the file holds.
    var poison: RepositoryError?
  }

  /// Names the file; nothing is touched before it is opened.
  public init(file: URL) { name = file.standardizedFileURL.path }

  private var directory: String { URL(fileURLWithPath: name).deletingLastPathComponent().path }

  /// Reads the store and hands over every record; writes nothing.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    guard options.access == .exclusive else {
      throw RepositoryError(.unsupported, "the file belongs to one process", file: name)
    }
    try fileSystem.createDirectory(directory)
    let lock = try fileSystem.lock(name + "-lock")  // throws .alreadyOpen or .locked
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(directory)  // decide only on what a crash cannot take away any more
      let found = try read()
      let contents = found ?? Contents(storeID: UUID())
      for record in contents.records.values { visit(record) }
      state.withLock { $0 = State(contents: contents, options: options, lock: lock) }
      return OpenReport(
        storeID: contents.storeID, commit: Revision(contents.commit), isNew: found == nil,
        recordCount: contents.records.values.count { $0.value != nil }, tombstoneHorizon: contents.horizon)
    } catch {
      lock.release()
      throw error
    }
  }

  /// Creates a new store; there is nothing else to recover, since every commit is a whole file.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    if report.isNew { try replace(name, with: openState().contents) }
    return report
  }

  /// Keeps the batch, all of it or none.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    var state = try openState()
    guard batch.commits.lowerBound == state.contents.commit + 1 else {
      throw .notConsecutive(batch, after: Revision(state.contents.commit), file: name)
    }
    for record in batch.records { state.contents.records[record.address] = record }  // the last one of an address holds
    state.contents.commit = batch.commits.upperBound
    state.contents.forgetTombstones(beyond: state.options.limits.tombstones)
    do throws(RepositoryError) {
      try replace(name, with: state.contents)
    } catch {
      if error.code == .outcomeUnknown { self.state.withLock { $0?.poison = error } }
      throw error
    }
    let next = state.contents
    self.state.withLock { $0?.contents = next }  // only now: a commit that throws has changed nothing
  }

  /// Makes every earlier commit durable.
  public func flush() throws(RepositoryError) { _ = try openState() }  // every commit is durable already
  /// Folds what grows into the main file.
  public func checkpoint() throws(RepositoryError) { _ = try openState() }

  /// Reads everything back and compares every checksum.
  public func verify() -> VerifyReport {
    do throws(RepositoryError) {
      guard let contents = try read() else { throw RepositoryError(.dataMissing, "the file is gone", file: name) }
      let recordCount = contents.records.values.count { $0.value != nil }
      return VerifyReport(
        commit: Revision(contents.commit), recordCount: recordCount, tombstoneCount: contents.records.count - recordCount)
    } catch {
      return VerifyReport(problems: [error])
    }
  }

  /// Writes a complete copy of the store to a new file.
  public func backup(to url: URL) throws(RepositoryError) {
    let copy = url.standardizedFileURL.path
    let contents = try openState().contents
    guard try fileSystem.open(copy, writable: false) == nil else {
      throw RepositoryError(.alreadyExists, "there is a file already", file: copy)
    }
    try replace(copy, with: contents)
  }

  /// Ends the use of the store.
  public func close() throws(RepositoryError) {
    state.withLock { state in
      state?.lock.release()
      state = nil
    }
  }

  private func openState() throws(RepositoryError) -> State {
    guard let state = state.withLock({ $0 }) else { throw RepositoryError(.closed, "the store was closed", file: name) }
    if let poison = state.poison { throw RepositoryError(.poisoned, "reopen the store", file: name, underlying: poison) }
    return state
  }

  // MARK: The file

  /// Temporary file, sync, rename, directory sync: at every moment the name stands for the old contents or the new.
  private func replace(_ path: String, with contents: Contents) throws(RepositoryError) {
    let temporary = path + "-tmp"
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    let written: Result<Void, RepositoryError> = try contents.bytes(file: path).withUnsafeBytes { bytes in
      do throws(RepositoryError) { return .success(try file.write(bytes, at: 0)) } catch { return .failure(error) }
    }
    try written.get()
    try file.sync()
    try file.close()
    try fileSystem.rename(temporary, to: path)
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(URL(fileURLWithPath: path).deletingLastPathComponent().path)
    } catch {
      throw RepositoryError(.outcomeUnknown, "the directory could not be synced", file: path, underlying: error)
    }
  }

  /// The contents of the file; `nil` only when there is no such file.
  private func read() throws(RepositoryError) -> Contents? {
    guard let file = try fileSystem.open(name, writable: false) else { return nil }
    try file.sync()
    let data = try file.read(at: 0, count: file.size())
    try file.close()
    return try Contents(data, file: name)
  }
}
