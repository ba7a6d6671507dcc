public import Foundation
public import Larder
internal import Synchronization

/// Writer of one blob, chunk by chunk.
///
/// Call ``BlobStore/writer(for:)`` to make one, ``write(_:)`` for each chunk, and ``finish()`` at the end. Make one call at a time. A
/// writer that you drop or abort leaves no file.
public actor BlobWriter {
  private let store: BlobStore
  private let key: String
  private let ticket: WriteTicket
  private var state = State.open
  private var file: (any OpenFile)?
  private var size = 0
  private var digest = SHA256Digest()
  /// Bytes of the blob written so far, which go into the store's memory at the end.
  ///
  /// The property is `nil` once the blob is larger than 16 MiB or than the store's limit of bytes in memory.
  private var kept: Data? = Data()

  private enum State {
    case open
    case failed(RepositoryError)
    case over
  }

  /// Maximum number of bytes of an unfinished blob in memory.
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
    // The last reference to the writer may be dropped on any thread, even the main thread, and removing a file blocks.
    store.index.executor.queue.async { ticket.giveUp(files, suspension) }
  }

  /// Appends a chunk to the blob.
  ///
  /// While the store is suspended, the call waits for up to 30 s. An error ends the write, and later calls throw the same error. No file is
  /// left, except in a suspended store, where ``BlobStore/resume()`` or the next opening removes the file.
  /// - Throws: `.tooLarge` if the blob would be larger than the disk limit. `.cancelled` if the task was cancelled, the key removed or the
  ///   store cleared. `.dataMissing` if another process has removed the unfinished file while the store was suspended: write the blob
  ///   again. `.closed` after ``finish()`` or ``abort()``. See the article Errors of Larder.
  public func write(_ chunk: Data) async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      // The limit is compared at every chunk, so that an endless body does not fill the disk before it is refused.
      guard chunk.count <= store.limits.diskBytes - size else {
        throw RepositoryError(.tooLarge, "the blob is larger than \(store.limits.diskBytes) bytes, the limit of the store")
      }
      let (file, offset) = (try openFile(), size)
      try chunk.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      size += chunk.count
      digest.add(chunk)
      // The bytes of a blob of several hundred megabytes must not pile up in memory while the blob is written.
      if size > min(Self.keptBytes, store.limits.memoryBytes) {
        kept = nil
      } else if offset == 0 {
        // The first chunk shares the caller's buffer. Appending to an empty `Data` would copy a blob that comes in one chunk.
        kept = chunk
      } else {
        kept?.append(chunk)
      }
    }
  }

  /// Makes the written bytes the blob of the key, and returns when the blob is durable.
  ///
  /// After this call the write is over, whether the call throws or not. On failure no file is left, except after `.outcomeUnknown` or
  /// `.poisoned`, when the blob may be durable.
  /// - Throws: The errors of `save` of ``BlobStore``.
  public func finish() async throws(RepositoryError) {
    try await failing { () throws(RepositoryError) in
      if Task.isCancelled { throw RepositoryError(.cancelled, "the task was cancelled") }
      try ticket.check()
      // A blob without any chunk has no file yet, so the file is created here.
      let file = try openFile()
      // The file is synced before it is renamed. Otherwise a power cut could leave the final name with only some of the bytes.
      try file.sync()
      try file.close()
    }
    state = .over
    let draft = BlobDraft(key: key, ticket: ticket, size: size, hash: digest.text, data: kept)
    // The draft has its own reference to the bytes. A writer that the app keeps after `finish()` must not hold the bytes in memory.
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

  /// Runs a step as soon as the store is not suspended, and ends the write if the step fails.
  private func failing(_ step: () throws(RepositoryError) -> Void) async throws(RepositoryError) {
    try checkOpen()
    do throws(RepositoryError) {
      while store.suspension.isActive { try await store.waitUntilResumed() }
      // Another call, such as `abort()`, may have ended the write during the wait.
      try checkOpen()
      try step()
    } catch {
      // Later calls throw the first error of the write, so a later error does not replace the first error.
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

/// State of an unfinished write, shared by its writer and the store: its key, its temporary file, and whether it may go on.
final class WriteTicket: Sendable {
  /// Reason why a write may not go on.
  enum End: Sendable {
    /// The key was removed after the write began.
    ///
    /// The file of the write still exists, and the writer has to remove it.
    case removed
    /// The store was closed and has removed the file.
    case closed
    /// Another process has removed the file while the store was suspended.
    case lost
    /// The write was finished or given up.
    case over
  }

  /// SHA-256 of the key's UTF-8.
  let id: String
  /// Name of the temporary file.
  ///
  /// The name holds a random number below 2⁶³, so that no other write has the same name.
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

  /// Ends the write, and returns true if the caller has to remove its file.
  ///
  /// A write that has ended as `.closed`, `.lost` or `.over` keeps that end.
  @discardableResult
  func end(_ new: End) -> Bool {
    state.withLock { state in
      switch state.end {
      // The file of such a write was removed or renamed already, and another process may have the directory by now.
      case .closed, .lost, .over: return false
      case nil, .removed:
        state.end = new
        return true
      }
    }
  }

  /// Ends the write, and removes its file unless the store is suspended.
  ///
  /// A file that stays is removed by ``BlobStore/resume()`` or the next opening. Call `giveUp` only on the executor of the store.
  func giveUp(_ files: BlobFiles, _ suspension: BlobSuspension) {
    if end(.over), state.withLock({ $0.hasFile }), !suspension.isActive { files.discard(temporary) }
  }
}

/// Weak reference to the ticket of a write, so that the store does not keep a dropped writer's ticket.
struct WeakTicket: Sendable {
  weak var ticket: WriteTicket?
}
