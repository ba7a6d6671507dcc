public import Foundation
public import Larder
internal import Synchronization

/// A writer of one blob, chunk by chunk; dropped or aborted, it leaves nothing.
///
/// Calls come one after the other. Made by ``BlobStore/writer(for:)``.
public actor BlobWriter {
  private let store: BlobStore
  private let key: String
  private let ticket: WriteTicket
  private var state = State.open
  private var file: (any OpenFile)?
  private var size = 0
  private var digest = SHA256Digest()
  /// The bytes written so far, for memory, until they are too many.
  private var kept: Data? = Data()

  private enum State {
    case open
    case failed(RepositoryError)
    case over
  }

  /// The most that is kept in memory of a blob while it is written.
  private static let keptBytes = 16 << 20

  /// The store's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { store.unownedExecutor }

  init(_ store: BlobStore, key: String, _ ticket: WriteTicket) {
    self.store = store
    self.key = key
    self.ticket = ticket
  }

  deinit {
    guard file != nil, case .open = state else { return }
    let (files, ticket, suspension) = (store.files, ticket, store.suspension)
    store.index.executor.queue.async { ticket.giveUp(files, suspension) }
  }

  /// Writes the bytes that follow.
  ///
  /// While the store is suspended, the call waits.
  /// - Throws: `.tooLarge` when the blob would be larger than the disk limit; `.full`, `.inputOutput`, `.cancelled`; `.suspended` after
  ///   30 s; `.dataMissing` when another process has removed the unfinished file while the store was suspended. The write is over
  ///   then: nothing is left, and later calls throw the same. `.closed` after ``finish()`` or ``abort()``, and once the store was closed;
  ///   `.poisoned` when an earlier sync of the store has failed.
  public func write(_ chunk: Data) async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      guard chunk.count <= store.limits.diskBytes - size else {
        throw RepositoryError(.tooLarge, "the blob is larger than \(store.limits.diskBytes) bytes, the limit of the store")
      }
      let (file, offset) = (try openFile(), size)
      try chunk.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      size += chunk.count
      digest.add(chunk)
      if size > min(Self.keptBytes, store.limits.memoryBytes) {
        kept = nil
      } else if offset == 0 {
        kept = chunk
      } else {
        kept?.append(chunk)
      }
    }
  }

  /// Makes what was written the blob of its key; returns when it is durable.
  ///
  /// - Throws: as `save` of ``BlobStore``; in every case the write is over, and on failure nothing is left.
  public func finish() async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      let file = try openFile()
      try file.sync()
      try file.close()
    }
    state = .over
    let draft = BlobDraft(key: key, ticket: ticket, size: size, hash: digest.text, data: kept)
    kept = nil
    try await store.commit(draft)
  }

  /// Ends the write and removes its file; does nothing when the write is over already.
  public func abort() {
    guard case .open = state else { return }
    end(.over)
  }

  /// The number of bytes of the blob in memory, for tests.
  var keptByteCount: Int { kept?.count ?? 0 }

  private func openFile() throws(RepositoryError) -> any OpenFile {
    if let file { return file }
    try store.index.checkWritable()
    let new = try store.files.fileSystem.create(store.files.path(ticket.temporary))
    file = new
    ticket.noteFile()
    return new
  }

  /// Runs a step as soon as the store is not suspended, and ends the write when it fails.
  private func failing(_ step: () throws(RepositoryError) -> Void) async throws(RepositoryError) {
    try checkOpen()
    do throws(RepositoryError) {
      while store.suspension.isActive { try await store.waitUntilResumed() }
      try checkOpen()
      try step()
    } catch {
      // Another call may have ended the write while this one waited.
      if case .open = state { end(.failed(error)) }
      throw error
    }
  }

  private func checkOpen() throws(RepositoryError) {
    switch state {
    case .open: return
    case .failed(let error): throw error
    case .over: throw RepositoryError(.closed, "the write is over")
    }
  }

  private func end(_ state: State) {
    self.state = state
    kept = nil
    ticket.giveUp(store.files, store.suspension)
    file = nil
  }
}
