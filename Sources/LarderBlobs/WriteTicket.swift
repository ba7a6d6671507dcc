internal import Larder
internal import Synchronization

/// A write that is under way: its key, its unfinished file, and whether it may go on.
final class WriteTicket: Sendable {
  /// The reasons for which a write may not go on.
  enum End: Sendable {
    /// Its key was removed since it began; the file is still the writer's to remove.
    case removed
    /// The store was closed and has removed the file.
    case closed
    /// Another process has removed the file while the store was suspended.
    case lost
    /// It was finished or given up.
    case over
  }

  /// The SHA-256 of the key's UTF-8.
  let id: String
  /// The name of the unfinished file, which no other write ever has: the number in it is drawn from 2⁶³.
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

  /// Whether the write has made its file.
  var hasFile: Bool { state.withLock { $0.hasFile } }

  /// Whether the write has made its file, and may go on.
  var isWriting: Bool { state.withLock { $0.hasFile && $0.end == nil } }

  /// Notes that the file was made.
  func noteFile() { state.withLock { $0.hasFile = true } }

  /// Refuses a write that may not go on.
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

  /// Ends the write, and returns whether its file is the caller's to remove; a write that was over before stays as it was.
  @discardableResult
  func end(_ new: End) -> Bool {
    state.withLock { state in
      switch state.end {
      case .closed, .lost, .over: return false
      case nil, .removed:
        state.end = new
        return true
      }
    }
  }

  /// Ends the write, and removes its file unless the store is suspended.
  ///
  /// A file that stays is removed by ``BlobStore/resume()`` or by the next opening. On the executor only.
  func giveUp(_ files: BlobFiles, _ suspension: BlobSuspension) {
    if end(.over), state.withLock({ $0.hasFile }), !suspension.isActive { files.discard(temporary) }
  }
}

/// A weak reference to a write, which does not keep one alive that was dropped.
struct WeakTicket: Sendable {
  weak var ticket: WriteTicket?
}
