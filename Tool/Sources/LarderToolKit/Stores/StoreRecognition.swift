internal import Foundation
internal import Larder

/// Detection of a store's kind by its first bytes, the files beside it, and its name.
struct StoreRecognition {
  private let url: URL
  private let path: String

  init(_ url: URL) {
    self.url = url
    path = url.path(percentEncoded: false)
  }

  /// Returns the kind of the store.
  func kind() throws(RepositoryError) -> StoreKind {
    var status = stat()
    // `lstat` instead of `stat`, because a symbolic link is refused and not followed.
    let exists = lstat(path, &status) == 0
    if exists { try Self.checkKind(status.st_mode & S_IFMT, path) }
    let beginning = exists ? try Self.beginning(of: url) : nil
    if let beginning, let kind = Self.kind(ofBytes: beginning) { return kind }
    // The files beside a main file are better evidence than its name. A JSON file may be called `cache.db`.
    if let kind = try kindOfCompanions() { return kind }
    guard let beginning else { throw RepositoryError(.dataMissing, "there is no such file", file: path) }
    // A store whose first bytes are damaged gets the error of its kind, and not the one for files of other programs.
    if let kind = Self.kind(ofName: url.lastPathComponent), !Self.isOtherJSON(beginning) { return kind }
    throw RepositoryError(
      .notOurStore, "expected a JSON file or a SQLite database that Larder has written, found \(Self.describe(beginning))", file: path,
      offset: 0)
  }

  /// Refuses everything but a plain file.
  ///
  /// Opening a pipe would block until a writer appears.
  private static func checkKind(_ kind: mode_t, _ path: String) throws(RepositoryError) {
    switch kind {
    case S_IFREG: return
    case S_IFDIR:
      throw RepositoryError(.unsupported, "expected the file of a store, found a directory: name the file in it", file: path)
    case S_IFLNK:
      throw RepositoryError(
        .unsupported, "expected the file of a store, found a symbolic link, which is not followed: name the file it leads to", file: path)
    default: throw RepositoryError(.unsupported, "expected the file of a store, found a device, pipe or socket: name a file", file: path)
    }
  }

  /// Returns the kind that the ending of a file name stands for.
  ///
  /// `nil` for other endings.
  static func kind(ofName name: String) -> StoreKind? {
    switch name.split(separator: ".", omittingEmptySubsequences: false).last?.lowercased() {
    case "json": .jsonFile
    case "sqlite", "sqlite3", "db": .sqliteFile
    default: nil
    }
  }

  private static func kind(ofBytes bytes: Data) -> StoreKind? {
    if bytes.starts(with: Data("SQLite format 3\0".utf8)) { return .sqliteFile }
    return bytes.starts(with: Data(#"{"format":"larder""#.utf8)) ? .jsonFile : nil
  }

  /// Returns the kind that a journal or write-ahead log beside the main file indicates.
  private func kindOfCompanions() throws(RepositoryError) -> StoreKind? {
    let journal = URL(fileURLWithPath: path + "-journal", isDirectory: false)
    // Everything but a plain file is left to the backend, which refuses it. Opening a pipe would block.
    if Self.isPlainFile(journal.path), try Self.beginning(of: journal).starts(with: Data("LARDERJL".utf8)) { return .jsonFile }
    return FileManager.default.fileExists(atPath: path + "-wal") ? .sqliteFile : nil
  }

  private static func isOtherJSON(_ bytes: Data) -> Bool {
    guard let first = bytes.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) else { return false }
    // A main file with a damaged header may still begin with `{"form`, and is not taken for another program's JSON.
    return (first == UInt8(ascii: "{") || first == UInt8(ascii: "[")) && !bytes.starts(with: Data(#"{"form"#.utf8))
  }

  private static func describe(_ bytes: Data) -> String {
    if bytes.isEmpty { return "an empty file" }
    return isOtherJSON(bytes) ? "JSON of another program" : "other bytes"
  }

  /// Returns true if there is a plain file at a path.
  ///
  /// A symbolic link to one does not count.
  static func isPlainFile(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// Number of bytes that are enough to distinguish the kinds.
  private static let beginningSize = 64

  /// Returns the first 64 bytes of a file.
  static func beginning(of url: URL) throws(RepositoryError) -> Data {
    do {
      let handle = try FileHandle(forReadingFrom: url)
      defer { do { try handle.close() } catch {} }  // nothing was written
      return try handle.read(upToCount: beginningSize) ?? Data()
    } catch {
      let path = url.path(percentEncoded: false)
      // The permissions are examined only after the failure. An earlier check could be outdated when the file is opened.
      guard FileManager.default.isReadableFile(atPath: path) else {
        throw RepositoryError(.protectedDataUnavailable, "the file cannot be read", file: path)
      }
      throw RepositoryError(.inputOutput, "the file cannot be read", file: path, underlying: error)
    }
  }
}
