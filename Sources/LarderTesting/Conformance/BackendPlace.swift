public import Foundation
public import Larder

/// The place of one store of a backend under test.
public struct BackendPlace: Sendable {
  /// The main file of the store, if it has one.
  public let file: URL?
  /// The place for a backup, if the backend can make one.
  public let backup: Backup?
  /// Removes the place.
  public let remove: @Sendable () -> Void
  /// Makes a backend that is not open, on the store that is kept here.
  public let makeBackend: @Sendable () throws -> any StorageBackend

  /// The file of a backup, and the backend that opens it.
  public struct Backup: Sendable {
    /// The file that the backup will be.
    public let file: URL
    /// Makes a backend that is not open, on the backup.
    public let makeBackend: @Sendable () throws -> any StorageBackend

    /// Names a file that does not exist yet.
    public init(file: URL, makeBackend: @escaping @Sendable () throws -> any StorageBackend) {
      self.file = file
      self.makeBackend = makeBackend
    }
  }

  /// Describes a place.
  ///
  /// - Parameters:
  ///   - file: The main file that the store will have, if it has one; it does not exist yet. The rules about files of other programs need
  ///     it.
  ///   - backup: The place for a backup; the rules about backups need it.
  ///   - remove: Removes the place, after the check.
  ///   - makeBackend: Makes a backend that is not open, on the store that is kept here; called again to reopen the store.
  public init(
    file: URL? = nil, backup: Backup? = nil, remove: @escaping @Sendable () -> Void = {},
    makeBackend: @escaping @Sendable () throws -> any StorageBackend
  ) {
    self.file = file
    self.backup = backup
    self.remove = remove
    self.makeBackend = makeBackend
  }
}
