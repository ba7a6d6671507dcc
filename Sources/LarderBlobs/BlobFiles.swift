internal import Foundation
internal import Larder

/// Names of a blob store's files, and the operations on these files.
///
/// A blob's file is named by the SHA-256 of its key, so a key is never a path. Every operation blocks its thread, so call `BlobFiles` only
/// on the store's executor.
struct BlobFiles: Sendable {
  let directory: String
  let fileSystem: any FileSystem

  init(_ directory: URL, _ fileSystem: any FileSystem) {
    self.directory = directory.standardizedFileURL.path
    self.fileSystem = fileSystem
  }

  /// Name of the index file, which is a JSON store in the same directory.
  static let index = "blob-index.json"

  static func name(_ id: String, slot: Int) -> String { slot == 0 ? id : "\(id)-\(slot)" }
  static func name(_ entry: BlobEntry) -> String { name(entry.id, slot: entry.slot) }
  static func temporaryName(_ id: String, _ number: Int) -> String { "\(id)-\(number)-tmp" }

  func path(_ name: String) -> String { directory + "/" + name }

  /// Kind of a file, by its name: a blob, an unfinished write, or any other file, such as the index.
  enum Kind { case blob, unfinished, other }

  /// Returns the kind of a file name.
  ///
  /// A name that is neither the name of a blob nor that of an unfinished write is `.other`.
  static func kind(of name: String) -> Kind {
    // The pattern of names is strict, because a file of the kind `.blob` or `.unfinished` is removed if the index does not name it. A
    // user's own file must not match the pattern.
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard let id = parts.first?.utf8, id.count == 64, id.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }) else {
      return .other
    }
    switch parts.count {
    case 1: return .blob
    case 2: return parts[1] == "1" ? .blob : .other
    case 3: return parts[2] == "tmp" && Int(parts[1]) != nil ? .unfinished : .other
    default: return .other
    }
  }

  /// Returns the contents of a blob, or `nil` if its file does not exist.
  ///
  /// - Throws: `.corrupted` if `comparesHash` is true and the file's size or hash differs from the index entry.
  func read(_ entry: BlobEntry, comparesHash: Bool) throws(RepositoryError) -> Data? {
    let path = path(Self.name(entry))
    guard let file = try fileSystem.open(path, writable: false) else { return nil }
    // The size is compared before the read, so that a damaged file of several gigabytes is not read into memory only to be refused.
    let size = try file.size()
    guard size == entry.size || !comparesHash else {
      throw RepositoryError(.corrupted, "the blob has \(size) bytes and not \(entry.size)", file: path)
    }
    let data = try file.read(at: 0, count: size)
    try file.close()
    guard !comparesHash || SHA256Digest.text(of: data) == entry.hash else {
      throw RepositoryError(.corrupted, "the blob does not match its hash", file: path)
    }
    return data
  }

  /// Renames a written and synced file to its final name, durably.
  ///
  /// A directory, a link or a pipe that has the final name is first set aside (renamed). If `place` fails, it removes the file under both
  /// names, as far as the system allows.
  /// - Returns: An error to report if a directory, a link or a pipe was renamed.
  func place(_ temporary: String, as name: String) throws(RepositoryError) -> RepositoryError? {
    do throws(RepositoryError) {
      let problem = try rename(temporary, to: name)
      // The caller commits the index entry next. Without the sync of the directory, a power cut could leave the entry without its file.
      try fileSystem.syncDirectory(directory)
      return problem
    } catch {
      discard(temporary)
      discard(name)
      throw error
    }
  }

  private func rename(_ temporary: String, to name: String) throws(RepositoryError) -> RepositoryError? {
    let failure: RepositoryError
    do throws(RepositoryError) {
      try fileSystem.rename(path(temporary), to: path(name))
      return nil
    } catch { failure = error }
    // The kind of the existing entry is looked up only after a failed rename, which saves a system call in each write that succeeds.
    guard isOfAnotherKind(name) else { throw failure }
    let problem = try setAside(name)
    try fileSystem.rename(path(temporary), to: path(name))
    return problem
  }

  /// Removes a file that no index entry names, and ignores a failure.
  ///
  /// A blob file that no index entry names is never read, and the next opening of the store removes it.
  func discard(_ name: String) {
    do throws(RepositoryError) { try fileSystem.remove(path(name)) } catch {}
  }

  /// Removes a file, or sets aside (renames) a directory, a link or a pipe that has the file's name.
  ///
  /// - Returns: An error to report if a directory, a link or a pipe was renamed.
  @discardableResult
  func clear(_ name: String) throws(RepositoryError) -> RepositoryError? {
    if isOfAnotherKind(name) { return try setAside(name) }
    try fileSystem.remove(path(name))
    return nil
  }

  // MARK: Directories, links and pipes

  /// Returns true if the directory has an entry of this name that is no plain file, such as a directory, a link or a pipe.
  func isOfAnotherKind(_ name: String) -> Bool {
    do throws(RepositoryError) {
      return try fileSystem.status(of: path(name)).map { $0.kind != .file } ?? false
    } catch {
      return error.code == .unsupported  // a `FileSystem` that opens a file to read its status refuses other kinds of entries
    }
  }

  /// Renames an entry of the directory to a name that ends in `-damaged`, under which the store never reads or removes it.
  ///
  /// A plain file replaces a plain file that was set aside under the same name before. If an entry that cannot be replaced has the name, a
  /// number is added to the new name.
  /// - Returns: An error to report, which contains the old and the new name.
  func setAside(_ name: String) throws(RepositoryError) -> RepositoryError {
    let new = name + "-damaged"
    var failure: RepositoryError?
    // The number of attempts is bounded, because a file system that refuses every new name would otherwise keep an opening in this loop for
    // ever.
    for number in 0..<1_000 {
      let target = number == 0 ? new : "\(new)-\(number)"
      do throws(RepositoryError) {
        try fileSystem.rename(path(name), to: path(target))
        return RepositoryError(.unsupported, "this was no file of the store, and is now \(target)", file: path(name))
      } catch {
        // Another name is tried only if a directory has the new name, or if a file has the new name and the renamed entry is a directory.
        guard let call = error.underlying as? SystemCallError, Self.taken.contains(call.errorNumber) else { throw error }
        failure = error
      }
    }
    throw failure
      ?? RepositoryError(.inputOutput, "expected a free name ending in -damaged, found none: remove old ones", file: path(name))
  }

  private static let taken: Set<Int32> = [EISDIR, ENOTDIR, ENOTEMPTY, EEXIST]

  /// Returns true if the name shows that a file was set aside (renamed), so that the store must not touch the file again.
  ///
  /// The text `-damaged` may stand anywhere in the name, because earlier versions of Larder did not put this text at the end of an index
  /// file's name.
  static func isSetAside(_ name: String) -> Bool { name.contains("-damaged") }
}
