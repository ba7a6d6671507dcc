internal import Foundation
internal import Larder

/// The files of a blob store: their names, and the operations on them.
///
/// A blob is named by the SHA-256 of its key, so that a key is never a path. Everything here blocks: on the executor only.
struct BlobFiles: Sendable {
  let directory: String
  let fileSystem: any FileSystem

  init(_ directory: URL, _ fileSystem: any FileSystem) {
    self.directory = directory.standardizedFileURL.path
    self.fileSystem = fileSystem
  }

  /// The name of the index, a JSON store in the same directory.
  static let index = "blob-index.json"

  static func name(_ id: String, slot: Int) -> String { slot == 0 ? id : "\(id)-\(slot)" }
  static func name(_ entry: BlobEntry) -> String { name(entry.id, slot: entry.slot) }
  static func temporaryName(_ id: String, _ number: Int) -> String { "\(id)-\(number)-tmp" }

  func path(_ name: String) -> String { directory + "/" + name }

  /// The kinds of names in the directory.
  enum Kind { case blob, unfinished, other }

  /// Returns the kind of a name; names that a blob store does not make are `.other`.
  static func kind(of name: String) -> Kind {
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

  /// Returns the contents of a blob; `nil` when its file is gone.
  ///
  /// - Throws: `.corrupted` when they are not what was stored.
  func read(_ entry: BlobEntry, comparesHash: Bool) throws(RepositoryError) -> Data? {
    let path = path(Self.name(entry))
    guard let file = try fileSystem.open(path, writable: false) else { return nil }
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

  /// Gives a written and synced file its name, durably; what has the name and is no file is set aside.
  ///
  /// On failure neither name is left, as far as the system allows.
  /// - Returns: What was set aside, as an error to report.
  func place(_ temporary: String, as name: String) throws(RepositoryError) -> RepositoryError? {
    do throws(RepositoryError) {
      let problem = try rename(temporary, to: name)
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
    guard isOfAnotherKind(name) else { throw failure }
    let problem = try setAside(name)
    try fileSystem.rename(path(temporary), to: path(name))
    return problem
  }

  /// Removes a file that nothing refers to any more.
  ///
  /// If that fails, the next open finds it and removes it: a file without an entry is never read.
  func discard(_ name: String) {
    do throws(RepositoryError) { try fileSystem.remove(path(name)) } catch {}
  }

  /// Removes a file, or sets aside what has its name and is none.
  ///
  /// - Returns: What was set aside, as an error to report.
  @discardableResult
  func clear(_ name: String) throws(RepositoryError) -> RepositoryError? {
    if isOfAnotherKind(name) { return try setAside(name) }
    try fileSystem.remove(path(name))
    return nil
  }

  // MARK: What is no file

  /// Whether a name stands for something that is no plain file, such as a directory, a link or a pipe.
  func isOfAnotherKind(_ name: String) -> Bool {
    do throws(RepositoryError) {
      return try fileSystem.status(of: path(name)).map { $0.kind != .file } ?? false
    } catch {
      return error.code == .unsupported  // a file system that opens a file for its status has refused that
    }
  }

  /// Gives what has a name another one, under which it is left alone: nothing of it is read or removed.
  ///
  /// A plain file takes the place of one that was set aside before it; beside anything else it gets a number.
  /// - Returns: An error to report, with both names.
  func setAside(_ name: String) throws(RepositoryError) -> RepositoryError {
    let new = name + "-damaged"
    var failure: RepositoryError?
    for number in 0..<1_000 {
      let target = number == 0 ? new : "\(new)-\(number)"
      do throws(RepositoryError) {
        try fileSystem.rename(path(name), to: path(target))
        return RepositoryError(.unsupported, "this was no file of the store, and is now \(target)", file: path(name))
      } catch {
        // A name that is taken by a directory, or by a file where this is a directory.
        guard let call = error.underlying as? SystemCallError, Self.taken.contains(call.errorNumber) else { throw error }
        failure = error
      }
    }
    throw failure
      ?? RepositoryError(.inputOutput, "expected a free name ending in -damaged, found none: remove old ones", file: path(name))
  }

  private static let taken: Set<Int32> = [EISDIR, ENOTDIR, ENOTEMPTY, EEXIST]

  /// Whether a name is that of something that was set aside, which is never touched again; earlier versions wrote `-damaged` before the
  /// end of a name of the index.
  static func isSetAside(_ name: String) -> Bool { name.contains("-damaged") }
}
