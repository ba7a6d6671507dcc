public import Foundation
public import Larder

/// What a kind of backend can do beyond what every backend must.
public struct BackendCapability: Hashable, Sendable, CustomStringConvertible {
  /// The name of the capability.
  public let description: String

  /// Can write a copy of the store to a new file.
  public static let backup = BackendCapability(description: "backup")
  /// Serves `StoreOptions.Access.shared`; not assumed unless said.
  public static let sharing = BackendCapability(description: "sharing")
  /// Each backend that a place makes is a handle of its own: dropping it ends its use of the place, as a crash of the process would.
  public static let handles = BackendCapability(description: "handles")
}

/// Makes fresh places for one kind of backend: what the author of a backend hands to the conformance suite.
///
/// ```swift
/// let factory = BackendFactory.file(named: "store.db") { file in MyBackend(file: file) }
/// ```
public struct BackendFactory: Sendable {
  /// What this kind of backend can do; rules that need more do not apply to it.
  public let capabilities: Set<BackendCapability>
  private let place: @Sendable () throws -> BackendPlace

  /// Describes a kind of backend.
  ///
  /// - Parameters:
  ///   - capabilities: What it can do: `backup` and `handles` unless given.
  ///   - place: Makes a new, empty place; called once for each check.
  public init(
    capabilities: Set<BackendCapability> = [.backup, .handles], place: @escaping @Sendable () throws -> BackendPlace
  ) {
    self.capabilities = capabilities
    self.place = place
  }

  /// Describes a kind of backend that keeps its store in a file, with other files beside it if it likes.
  ///
  /// Each place is a new directory under the system's temporary directory, removed after the check.
  /// - Parameters:
  ///   - name: The name of the main file.
  ///   - capabilities: What the backend can do: `backup` and `handles` unless given.
  ///   - makeBackend: Makes a backend for a file that may or may not exist.
  public static func file(
    named name: String, capabilities: Set<BackendCapability> = [.backup, .handles],
    makeBackend: @escaping @Sendable (URL) throws -> any StorageBackend
  ) -> BackendFactory {
    BackendFactory(capabilities: capabilities) {
      let directory = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)", directoryHint: .isDirectory)
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      let copy = directory.appending(path: "backup-" + name, directoryHint: .notDirectory)
      let file = directory.appending(path: name, directoryHint: .notDirectory)
      return BackendPlace(
        file: file, backup: BackendPlace.Backup(file: copy) { try makeBackend(copy) },
        remove: {
          do { try FileManager.default.removeItem(at: directory) } catch { return }  // what is left is the system's to clean
        },
        makeBackend: { try makeBackend(file) })
    }
  }

  /// Makes a new, empty place, for tests of one's own; whoever asks for it calls its ``BackendPlace/remove``.
  public func makePlace() throws -> BackendPlace { try place() }
}

/// Where one store of a backend under test is kept.
public struct BackendPlace: Sendable {
  /// The main file that the store has, if it has one.
  public let file: URL?
  /// Where a backup can go, if it can.
  public let backup: Backup?
  /// Removes the place.
  public let remove: @Sendable () -> Void
  /// Makes a backend that is not open, on the store that is kept here.
  public let makeBackend: @Sendable () throws -> any StorageBackend

  /// Where a backup goes, and how it is opened.
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
  ///   - file: The main file that the store will have, if it has one; it does not exist yet. The rules about foreign files need it.
  ///   - backup: Where a backup can go; the rules about backups need it.
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
