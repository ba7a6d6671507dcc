public import Foundation
public import Larder

/// Description of one kind of backend for the conformance suite: its capabilities, and a closure that makes storage locations for stores.
///
/// ```swift
/// let factory = BackendFactory.file(named: "store.db") { file in MyBackend(file: file) }
/// ```
public struct BackendFactory: Sendable {
  /// Capabilities of this kind of backend.
  ///
  /// The conformance suite skips each rule that needs a capability which is not in this set.
  public let capabilities: Set<BackendCapability>
  private let place: @Sendable () throws -> BackendPlace

  /// Describes a kind of backend by its capabilities and a closure that makes storage locations for its stores.
  ///
  /// - Parameters:
  ///   - capabilities: The capabilities of the backend: `backup` and `handles` by default.
  ///   - place: Makes a new, empty storage location. The suite calls the closure once for each check of a rule.
  public init(
    capabilities: Set<BackendCapability> = [.backup, .handles], place: @escaping @Sendable () throws -> BackendPlace
  ) {
    self.capabilities = capabilities
    self.place = place
  }

  /// Describes a kind of backend that stores its records in a file, and may make other files beside it.
  ///
  /// Each check of a rule gets a new directory under the system's temporary directory. The suite removes the directory after the check.
  ///
  /// - Parameters:
  ///   - name: The name of the main file.
  ///   - capabilities: The capabilities of the backend: `backup` and `handles` by default.
  ///   - makeBackend: Makes a backend for a file that may or may not exist.
  public static func file(
    named name: String, capabilities: Set<BackendCapability> = [.backup, .handles],
    makeBackend: @escaping @Sendable (URL) throws -> any StorageBackend
  ) -> BackendFactory {
    BackendFactory(capabilities: capabilities) {
      // Each check has its own directory, because checks may run in parallel and a check compares all files of its directory.
      let directory = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)", directoryHint: .isDirectory)
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      // The backup's name has a prefix and no suffix, because a backend may keep its own files under the store's name with a suffix.
      let copy = directory.appending(path: "backup-" + name, directoryHint: .notDirectory)
      let file = directory.appending(path: name, directoryHint: .notDirectory)
      return BackendPlace(
        file: file, backup: BackendPlace.Backup(file: copy) { try makeBackend(copy) },
        remove: {
          do { try FileManager.default.removeItem(at: directory) } catch { return }  // the system removes old temporary directories
        },
        makeBackend: { try makeBackend(file) })
    }
  }

  /// Makes a new, empty storage location for a test of your own.
  ///
  /// Call ``BackendPlace/remove`` of the returned location at the end of the test.
  ///
  /// - Throws: The error of the closure that makes storage locations.
  public func makePlace() throws -> BackendPlace { try place() }
}

/// Storage location of one store under test: its files, and a closure that makes backends on these files.
public struct BackendPlace: Sendable {
  /// Main file of the store, or `nil` if the backend has no file.
  public let file: URL?
  /// File for a backup of the store, or `nil` if the backend makes no backups.
  public let backup: Backup?
  /// Removes the store and all its files after a test.
  public let remove: @Sendable () -> Void
  /// Makes a backend, not yet open, on the store at this location.
  public let makeBackend: @Sendable () throws -> any StorageBackend

  /// File of a backup, with a closure that makes backends on this file.
  public struct Backup: Sendable {
    /// File to which the backup is written.
    public let file: URL
    /// Makes a backend, not yet open, on the file of the backup.
    public let makeBackend: @Sendable () throws -> any StorageBackend

    /// Describes a backup that does not exist yet.
    public init(file: URL, makeBackend: @escaping @Sendable () throws -> any StorageBackend) {
      self.file = file
      self.makeBackend = makeBackend
    }
  }

  /// Describes the storage location of one store under test.
  ///
  /// - Parameters:
  ///   - file: The main file of the store, which does not exist yet. Without a file, the suite skips the rules about files.
  ///   - backup: The file for a backup. Without a file for a backup, the suite skips the rules about backups.
  ///   - remove: Removes all files of the store after the check of a rule.
  ///   - makeBackend: Makes a backend, not yet open, on the store at this location. The suite calls the closure again for each further
  ///     backend that opens the store.
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

/// Optional capability of a kind of backend, such as making backups.
public struct BackendCapability: Hashable, Sendable, CustomStringConvertible {
  /// Name of the capability.
  public let description: String

  /// The backend writes a copy of the store to a new file.
  public static let backup = BackendCapability(description: "backup")
  /// The backend can open a store with `StoreOptions.Access.shared`, so that several processes can use the store.
  ///
  /// A ``BackendFactory`` lists `backup` and `handles` by default, and not `sharing`.
  public static let sharing = BackendCapability(description: "sharing")
  /// The backend is a `PagingBackend`, which can leave the records of a store in its storage.
  public static let paging = BackendCapability(description: "paging")
  /// Each backend object has its own open files and locks.
  ///
  /// If a backend object is dropped without being closed, another backend object can open the store, as after a crash of the process. The
  /// rules about crashes need the capability `handles`.
  public static let handles = BackendCapability(description: "handles")
}
