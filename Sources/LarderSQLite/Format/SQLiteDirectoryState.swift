internal import Foundation
internal import Larder

/// The state of a store's directory as the system reports it.
///
/// Its time changes when a name comes, goes, or gets another file.
struct SQLiteDirectoryState: Equatable {
  private let identity: FileIdentity
  private let changed: Int64
  /// Whether a later change would show in another time.
  let isSettled: Bool

  /// Reads the state of the directory that holds a file; `nil` when there is none.
  init?(of path: String) throws(RepositoryError) {
    let now = SQLiteClock.now
    guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), let status = try SQLitePath.status(of: String(path[...end])) else {
      return nil
    }
    identity = FileIdentity(status)
    changed = SQLiteClock.entryChange(of: status)
    isSettled = SQLiteClock.isSettled(changed, now)
  }
}
