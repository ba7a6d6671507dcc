internal import Foundation

/// Modification time, size and inode of a file, by which a change of the file is noticed.
struct FileVersion: Sendable, Hashable {
  private let modified: Date?
  private let size: Int
  private let number: Int

  /// Reads the version of the file that a path leads to.
  ///
  /// A file that cannot be read has a version of its own, so it counts as changed once it can be read.
  init(_ path: String) {
    let attributes = FileManager.default.attributes(ofFileAt: path)
    modified = attributes[.modificationDate] as? Date
    size = (attributes[.size] as? NSNumber)?.intValue ?? 0
    // A file that is renamed into place may have the time and size of the old one, but has another inode.
    number = (attributes[.systemFileNumber] as? NSNumber)?.intValue ?? 0
  }
}

extension FileManager {
  /// Returns the attributes of the file that a path leads to, or none if there is no file.
  ///
  /// `attributesOfItem` alone reads a symbolic link itself, which stays the same when its file is replaced.
  func attributes(ofFileAt path: String) -> [FileAttributeKey: Any] {
    let file = URL(filePath: path).resolvingSymlinksInPath().path(percentEncoded: false)
    do { return try attributesOfItem(atPath: file) } catch { return [:] }
  }
}
