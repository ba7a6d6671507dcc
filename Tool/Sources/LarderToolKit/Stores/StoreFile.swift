// Stores/ finds out what a path holds, and reads it.
// Invariant: nothing here changes a file, its mode or its times, or leaves a new one. Called by every command.

package import Foundation
package import Larder
internal import LarderSQLite

/// A store at a path: its kind, and the backend for it.
package struct StoreFile: Sendable {
  /// The main file.
  package let url: URL
  /// The kind of store.
  package let kind: StoreKind

  /// The path of the main file.
  package var path: String { url.path(percentEncoded: false) }

  /// Recognises the store at a path.
  ///
  /// The first bytes decide; where they are damaged or missing, the files beside it and the ending of the name do.
  /// - Throws: `.dataMissing` where there is nothing, `.notOurStore` for what is neither kind, `.unsupported` for a directory,
  ///   `.protectedDataUnavailable` and `.inputOutput` where the file cannot be read.
  package init(path: String) throws(RepositoryError) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    kind = try StoreRecognition(url).kind()
  }

  /// Names a store that is still to be made; the ending of the name decides, `.json` or anything of SQLite.
  /// - Throws: `.unsupported` for any other ending.
  package init(newAt path: String, kind: StoreKind? = nil) throws(RepositoryError) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    guard let kind = kind ?? StoreRecognition.kind(ofName: url.lastPathComponent) else {
      throw RepositoryError(
        .unsupported, "expected a name that ends with .json, .sqlite, .sqlite3 or .db, found another: choose one of them", file: path)
    }
    self.kind = kind
  }

  /// Names a store that is still to be made: of the kind that its name says, or of that of another store where the name says none.
  ///
  /// A name that ends as that of the other store is of its kind: an app may name a JSON file `cache.db`.
  package init(newAt path: String, like other: StoreFile) {
    url = URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL
    let named = url.pathExtension == other.url.pathExtension ? nil : StoreRecognition.kind(ofName: url.lastPathComponent)
    kind = named ?? other.kind
  }

  /// Names a store that another one is put in the place of.
  ///
  /// A store that is there is known by its bytes. For a file without such bytes the name decides, as for a new one: it may be damaged.
  /// - Throws: as ``init(path:)`` for what cannot be read, or is no plain file.
  package static func replaced(at path: String, by other: StoreFile) throws(RepositoryError) -> StoreFile {
    do throws(RepositoryError) { return try StoreFile(path: path) } catch {
      guard error.code == .dataMissing || error.code == .notOurStore else { throw error }
      return StoreFile(newAt: path, like: other)
    }
  }

  /// A new backend for the store.
  package var backend: any StorageBackend {
    switch kind {
    case .jsonFile: JSONFileBackend(file: url)
    case .sqliteFile: SQLiteBackend(file: url)
    }
  }
}
