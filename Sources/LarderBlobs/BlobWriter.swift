public import Foundation
public import Larder
internal import Synchronization

/// A writer that stores one blob chunk by chunk.
///
/// Call ``BlobStore/writer(for:)`` to create a writer, ``write(_:)`` for each chunk, and ``finish()`` at the end. Make one call of a writer
/// at a time. A writer that you release or abort before ``finish()`` leaves no file.
public actor BlobWriter {
  private let store: BlobStore
  private let key: String
  private let ticket: WriteTicket
  private var state = State.open
  private var file: (any OpenFile)?
  private var size = 0
  private var digest = SHA256Digest()
  /// Bytes of the blob written so far, which ``finish()`` puts into the store's cache in memory.
  ///
  /// `kept` is `nil` once the blob is larger than 16 MiB or than the store's limit of bytes in memory.
  private var kept: Data? = Data()

  private enum State {
    case open
    case failed(RepositoryError)
    case over
  }

  /// Maximum number of bytes of an unfinished blob that a writer keeps in memory.
  private static let keptBytes = 16 << 20

  /// The writer runs on the executor of its store.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { store.unownedExecutor }

  init(_ store: BlobStore, key: String, _ ticket: WriteTicket) {
    self.store = store
    self.key = key
    self.ticket = ticket
  }

  deinit {
    guard file != nil, case .open = state else { return }
    let (files, ticket, suspension) = (store.files, ticket, store.suspension)
    // The file is removed on the store's executor, because removing a file blocks and `deinit` may run on any thread, even the main thread.
    store.index.executor.queue.async { ticket.giveUp(files, suspension) }
  }

  /// Appends a chunk to the blob.
  ///
  /// While the store is suspended, the call waits for up to 30 s. An error ends the write and removes its file, and later calls throw the
  /// same error. In a suspended store the file stays until ``BlobStore/resume()`` or the next opening removes it.
  /// - Throws: `.tooLarge` if the blob would be larger than the disk limit. `.cancelled` if the task was cancelled, the key removed or the
  ///   store cleared. `.dataMissing` if another process has removed the unfinished file while the store was suspended: write the blob
  ///   again. `.closed` after ``finish()`` or ``abort()``. See the article Errors of Larder.
  public func write(_ chunk: Data) async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      // The size is compared with the limit at every chunk, so that an endless download does not fill the disk before it is refused.
      guard chunk.count <= store.limits.diskBytes - size else {
        throw RepositoryError(.tooLarge, "the blob is larger than \(store.limits.diskBytes) bytes, the limit of the store")
      }
      let (file, offset) = (try openFile(), size)
      try chunk.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      size += chunk.count
      digest.add(chunk)
      // A large blob is not kept in memory, because the chunks of a blob of several hundred megabytes would pile up there.
      if size > min(Self.keptBytes, store.limits.memoryBytes) {
        kept = nil
      } else if offset == 0 {
        // The first chunk shares the caller's buffer. Appending to an empty `Data` would copy the bytes of a blob that arrives in one
        // chunk.
        kept = chunk
      } else {
        kept?.append(chunk)
      }
    }
  }

  /// Makes the written bytes the blob of the key, and returns when the blob is durable.
  ///
  /// The write ends with `finish()`, even if `finish()` throws. After an error no file is left, except after `.outcomeUnknown` or
  /// `.poisoned`, when the blob may be durable.
  /// - Throws: The errors of `save` of ``BlobStore``.
  public func finish() async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      // A blob without any chunk has no file yet, so `openFile()` creates the file.
      let file = try openFile()
      // The file is synced before it is renamed, because a power cut could otherwise leave a file with the final name and only some of the
      // bytes.
      try file.sync()
      try file.close()
    }
    state = .over
    let draft = BlobDraft(key: key, ticket: ticket, size: size, hash: digest.text, data: kept)
    // The draft (the finished temporary file) has its own reference to the bytes. The writer releases its reference, because an app may
    // keep the writer after `finish()`.
    kept = nil
    try await store.commit(draft)
  }

  /// Ends the write and removes its file.
  ///
  /// `abort()` does nothing if the write is over.
  public func abort() {
    guard case .open = state else { return }
    end(.over)
  }

  /// Number of bytes of the blob in memory, for tests.
  var keptByteCount: Int { kept?.count ?? 0 }

  /// Returns the temporary file, which the first call creates.
  private func openFile() throws(RepositoryError) -> any OpenFile {
    if let file { return file }
    // A poisoned or closed store takes no commit, so no file is created for the blob.
    try store.index.checkWritable()
    let new = try store.files.fileSystem.create(store.files.path(ticket.temporary))
    file = new
    ticket.noteFile()
    return new
  }

  /// Waits until the store is not suspended, runs a step of the write, and ends the write if the step fails.
  private func failing(_ step: () throws(RepositoryError) -> Void) async throws(RepositoryError) {
    try checkOpen()
    do throws(RepositoryError) {
      while store.suspension.isActive { try await store.waitUntilResumed() }
      // Another call of the writer, such as `abort()`, may have ended the write during the wait.
      try checkOpen()
      try step()
    } catch {
      // Later calls throw the first error of the write, so a later error must not replace it.
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

/// State of an unfinished write, shared by its writer and the store: the key, the temporary file, and whether the write may go on.
final class WriteTicket: Sendable {
  /// Reason why a write may not go on.
  enum End: Sendable {
    /// The key was removed after the write began.
    ///
    /// The temporary file of the write still exists, and the writer has to remove it.
    case removed
    /// The store was closed and has removed the temporary file of the write.
    case closed
    /// Another process has removed the temporary file while the store was suspended.
    case lost
    /// The write was finished or given up.
    case over
  }

  /// SHA-256 of the key's UTF-8.
  let id: String
  /// Name of the temporary file of the write.
  ///
  /// The file name contains a random number below 2⁶³, so that no two writes use the same name.
  let temporary: String
  private let state = Mutex(State())

  private struct State {
    var end: End?
    var hasFile = false
  }

  init(_ id: String) {
    self.id = id
    temporary = BlobFiles.temporaryName(id, .random(in: 1 ... .max))
  }

  /// True if the write has made its temporary file.
  var hasFile: Bool { state.withLock { $0.hasFile } }

  /// True if the write has made its temporary file and may go on.
  var isWriting: Bool { state.withLock { $0.hasFile && $0.end == nil } }

  /// Records that the temporary file was made.
  func noteFile() { state.withLock { $0.hasFile = true } }

  /// Throws an error if the write may not go on.
  ///
  /// - Throws: `.cancelled`, `.closed` or `.dataMissing`.
  func check() throws(RepositoryError) {
    switch state.withLock({ $0.end }) {
    case nil: return
    case .removed: throw RepositoryError(.cancelled, "the blob was removed while it was written")
    case .closed: throw RepositoryError(.closed, "the blob store was closed")
    case .lost:
      throw RepositoryError(
        .dataMissing,
        "expected the unfinished file of the blob, found that another process has removed it while the store was suspended; "
          + "write the blob again")
    case .over: throw RepositoryError(.closed, "the write is over")
    }
  }

  /// Ends the write, and returns true if the caller has to remove the temporary file.
  ///
  /// A write that has ended as `.closed`, `.lost` or `.over` keeps that end.
  @discardableResult
  func end(_ new: End) -> Bool {
    state.withLock { state in
      switch state.end {
      // The file of a write that was closed, lost or over was removed or renamed already, and another process may have the directory by
      // now.
      case .closed, .lost, .over: return false
      case nil, .removed:
        state.end = new
        return true
      }
    }
  }

  /// Ends the write, and removes its temporary file unless the store is suspended.
  ///
  /// In a suspended store, ``BlobStore/resume()`` or the next opening removes the file. Call `giveUp` only on the executor of the store.
  func giveUp(_ files: BlobFiles, _ suspension: BlobSuspension) {
    if end(.over), state.withLock({ $0.hasFile }), !suspension.isActive { files.discard(temporary) }
  }
}

/// Weak reference to the state of a write, so that the store does not keep the state of a writer that was released.
struct WeakTicket: Sendable {
  weak var ticket: WriteTicket?
}
