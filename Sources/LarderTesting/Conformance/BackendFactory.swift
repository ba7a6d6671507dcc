public import Foundation
public import Larder

/// Factory of empty places for one kind of backend, for the conformance suite.
///
/// ```swift
/// let factory = BackendFactory.file(named: "store.db") { file in MyBackend(file: file) }
/// ```
public struct BackendFactory: Sendable {
  /// Capabilities of this kind of backend.
  ///
  /// Rules that need other capabilities are skipped.
  public let capabilities: Set<BackendCapability>
  private let place: @Sendable () throws -> BackendPlace

  /// Describes a kind of backend by its capabilities and a closure that makes places for its stores.
  ///
  /// - Parameters:
  ///   - capabilities: The capabilities of the backend: `backup` and `handles` by default.
  ///   - place: Makes a new, empty place. Called once for each check.
  public init(
    capabilities: Set<BackendCapability> = [.backup, .handles], place: @escaping @Sendable () throws -> BackendPlace
  ) {
    self.capabilities = capabilities
    self.place = place
  }

  /// Describes a kind of backend that stores its records in a file, and may make other files beside it.
  ///
  /// Each place is a new directory under the system's temporary directory, which is removed after the check.
  /// - Parameters:
  ///   - name: The name of the main file.
  ///   - capabilities: The capabilities of the backend: `backup` and `handles` by default.
  ///   - makeBackend: Makes a backend for a file that may or may not exist.
  public static func file(
    named name: String, capabilities: Set<BackendCapability> = [.backup, .handles],
    makeBackend: @escaping @Sendable (URL) throws -> any StorageBackend
  ) -> BackendFactory {
    BackendFactory(capabilities: capabilities) {
      // A directory for each place, because checks may run in parallel and compare all files of the directory.
      let directory = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)", directoryHint: .isDirectory)
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      // Another prefix and not another suffix: a backend may keep files of its own under the store's name and a suffix.
      let copy = directory.appending(path: "backup-" + name, directoryHint: .notDirectory)
      let file = directory.appending(path: name, directoryHint: .notDirectory)
      return BackendPlace(
        file: file, backup: BackendPlace.Backup(file: copy) { try makeBackend(copy) },
        remove: {
          do { try FileManager.default.removeItem(at: directory) } catch { return }  // the system cleans its temporary directory
        },
        makeBackend: { try makeBackend(file) })
    }
  }

  /// Makes a new, empty place for a test of your own.
  ///
  /// Call the place's ``BackendPlace/remove`` at the end of the test.
  /// - Throws: The error of the closure that makes places.
  public func makePlace() throws -> BackendPlace { try place() }
}

/// Place of one store under test: its files, and a closure that makes backends over them.
public struct BackendPlace: Sendable {
  /// Main file of the store, or `nil` if the backend has no file.
  public let file: URL?
  /// Place for a backup, or `nil` if the backend makes no backups.
  public let backup: Backup?
  /// Removes the store and all its files after a test.
  public let remove: @Sendable () -> Void
  /// Makes a closed backend over the store of this place.
  public let makeBackend: @Sendable () throws -> any StorageBackend

  /// File of a backup, with a closure that makes backends over it.
  public struct Backup: Sendable {
    /// File to which the backup is written.
    public let file: URL
    /// Makes a closed backend over the backup.
    public let makeBackend: @Sendable () throws -> any StorageBackend

    /// Describes a backup that does not exist yet.
    public init(file: URL, makeBackend: @escaping @Sendable () throws -> any StorageBackend) {
      self.file = file
      self.makeBackend = makeBackend
    }
  }

  /// Describes the place of one store under test.
  ///
  /// - Parameters:
  ///   - file: The main file of the store, which does not exist yet. Without it, the rules about files are skipped.
  ///   - backup: The place for a backup. Without it, the rules about backups are skipped.
  ///   - remove: Removes the place after the check.
  ///   - makeBackend: Makes a closed backend over the store of this place. Called again each time the store is reopened.
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

/// Capability of a kind of backend that not every backend has.
public struct BackendCapability: Hashable, Sendable, CustomStringConvertible {
  /// Name of the capability.
  public let description: String

  /// The backend writes a copy of the store to a new file.
  public static let backup = BackendCapability(description: "backup")
  /// The backend serves `StoreOptions.Access.shared`.
  ///
  /// A factory does not list this by default.
  public static let sharing = BackendCapability(description: "sharing")
  /// Each backend object is a handle of its own.
  ///
  /// Dropping it ends its use of the place, as a crash of the process would.
  public static let handles = BackendCapability(description: "handles")
}
