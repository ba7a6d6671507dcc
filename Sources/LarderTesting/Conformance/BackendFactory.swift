public import Foundation
public import Larder

/// A maker of fresh places for one kind of backend, which its author hands to the conformance suite.
///
/// ```swift
/// let factory = BackendFactory.file(named: "store.db") { file in MyBackend(file: file) }
/// ```
public struct BackendFactory: Sendable {
  /// The abilities of this kind of backend; rules that need others do not apply to it.
  public let capabilities: Set<BackendCapability>
  private let place: @Sendable () throws -> BackendPlace

  /// Describes a kind of backend.
  ///
  /// - Parameters:
  ///   - capabilities: Its abilities: `backup` and `handles` unless given.
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
  ///   - capabilities: The abilities of the backend: `backup` and `handles` unless given.
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

  /// Makes a new, empty place for tests of one's own; call its ``BackendPlace/remove`` afterwards.
  ///
  /// - Throws: the error of the closure that makes places.
  public func makePlace() throws -> BackendPlace { try place() }
}
