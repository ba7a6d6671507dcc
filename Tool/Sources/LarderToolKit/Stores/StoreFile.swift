// Stores/ determines the kind of store at a path, and reads it.
// Invariant: no code here changes a file, its mode or its times, or leaves a new file. Called by every command.

package import Foundation
package import Larder
internal import LarderSQLite

/// Path and kind of a store, with the backend for it.
package struct StoreFile: Sendable {
  /// URL of the main file.
  package let url: URL
  /// Whether the store is a JSON file or a SQLite database.
  package let kind: StoreKind

  /// Path of the main file.
  package var path: String { url.path(percentEncoded: false) }

  /// Determines the kind of the existing store at a path.
  ///
  /// The first bytes decide. If they are damaged or missing, the files beside the main file and the ending of its name decide.
  /// - Throws: `.dataMissing` if there is no file, `.notOurStore` for a file of another program, `.unsupported` for anything but a plain
  ///   file, `.protectedDataUnavailable` and `.inputOutput` if the file cannot be read.
  package init(path: String) throws(RepositoryError) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    kind = try StoreRecognition(url).kind()
  }

  /// Creates the path of a new store.
  ///
  /// Without `kind`, the ending of the name decides: `.json`, `.sqlite`, `.sqlite3` or `.db`.
  /// - Throws: `.unsupported` for any other ending.
  package init(newAt path: String, kind: StoreKind? = nil) throws(RepositoryError) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    guard let kind = kind ?? StoreRecognition.kind(ofName: url.lastPathComponent) else {
      throw RepositoryError(
        .unsupported, "expected a name that ends with .json, .sqlite, .sqlite3 or .db, found another: choose one of them", file: path)
    }
    self.kind = kind
  }

  /// Creates the path of a new store whose kind is that of its name's ending, or else that of another store.
  ///
  /// A name with the same ending as the other store gets its kind, because an app may name a JSON file `cache.db`.
  package init(newAt path: String, like other: StoreFile) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    let named = url.pathExtension == other.url.pathExtension ? nil : StoreRecognition.kind(ofName: url.lastPathComponent)
    kind = named ?? other.kind
  }

  /// Returns the store at a path that another store will replace.
  ///
  /// An existing store's kind is determined by its bytes. A damaged or missing one gets its kind as a new store does.
  /// - Throws: as ``init(path:)`` for a file that cannot be read or is not a plain file.
  package static func replaced(at path: String, by other: StoreFile) throws(RepositoryError) -> StoreFile {
    do throws(RepositoryError) { return try StoreFile(path: path) } catch {
      // Other errors, such as a missing permission, end the command here, before it writes anything.
      guard error.code == .dataMissing || error.code == .notOurStore else { throw error }
      return StoreFile(newAt: path, like: other)
    }
  }

  /// New backend for the store.
  package var backend: any StorageBackend {
    switch kind {
    case .jsonFile: JSONFileBackend(file: url)
    case .sqliteFile: SQLiteBackend(file: url)
    }
  }
}
