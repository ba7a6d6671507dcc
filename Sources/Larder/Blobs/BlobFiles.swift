internal import Foundation

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

  /// What a name in the directory stands for.
  enum Kind { case blob, unfinished, other }

  /// Only names that a blob store makes are its own.
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

  /// The contents of a blob; `nil` when its file is gone.
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

  /// Gives a written and synced file its name, durably.
  ///
  /// On failure neither name is left, as far as the system allows.
  func place(_ temporary: String, as name: String) throws(RepositoryError) {
    do throws(RepositoryError) {
      try fileSystem.rename(path(temporary), to: path(name))
      try fileSystem.syncDirectory(directory)
    } catch {
      discard(temporary)
      discard(name)
      throw error
    }
  }

  /// Removes a file that nothing refers to any more.
  ///
  /// If that fails, the next open finds it and removes it: a file without an entry is never read.
  func discard(_ name: String) {
    do throws(RepositoryError) { try fileSystem.remove(path(name)) } catch {}
  }
}
