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
    /// It was finished or given up.
    case over
  }

  /// The SHA-256 of the key's UTF-8.
  let id: String
  /// The name of the unfinished file, which no other write ever has: the number in it is drawn from 2⁶³.
  let temporary: String
  private let state = Mutex<End?>(nil)

  init(_ id: String) {
    self.id = id
    temporary = BlobFiles.temporaryName(id, .random(in: 1 ... .max))
  }

  /// Refuses a write that may not go on.
  ///
  /// - Throws: `.cancelled` or `.closed`.
  func check() throws(RepositoryError) {
    switch state.withLock({ $0 }) {
    case nil: return
    case .removed: throw RepositoryError(.cancelled, "the blob was removed while it was written")
    case .closed: throw RepositoryError(.closed, "the blob store was closed")
    case .over: throw RepositoryError(.closed, "the write is over")
    }
  }

  /// Ends the write, and returns whether its file is the caller's to remove; a write that was over before stays as it was.
  @discardableResult
  func end(_ new: End) -> Bool {
    state.withLock { state in
      switch state {
      case .closed, .over: return false
      case nil, .removed:
        state = new
        return true
      }
    }
  }
}

/// A weak reference to a write, which does not keep one alive that was dropped.
struct WeakTicket: Sendable {
  weak var ticket: WriteTicket?
}
