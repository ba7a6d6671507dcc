internal import Foundation

/// The names of a JSON store's files, all beside the main file and derived from its name.
struct JSONFilePaths: Sendable {
  let directory: String
  /// The snapshot: a JSON document, complete at all times.
  let snapshot: String

  init(_ file: URL) {
    let url = file.standardizedFileURL
    snapshot = url.path
    directory = url.deletingLastPathComponent().path
  }

  var journal: String { snapshot + "-journal" }
  var lock: String { snapshot + "-lock" }
  /// The generation before the snapshot, kept if the options ask for it.
  var previous: String { snapshot + "-previous" }

  /// Bytes that were cut from a journal; never removed by Larder.
  func quarantine(generation: UInt64, offset: Int) -> String { "\(snapshot)-quarantine-\(generation)-\(offset)" }

  /// Where a file is written before it is renamed into place.
  static func temporary(for path: String) -> String { path + "-tmp" }

  /// Whether a name is that of bytes kept aside, and not of a copy that was interrupted.
  func isQuarantine(_ name: String) -> Bool {
    name.hasPrefix((snapshot as NSString).lastPathComponent + "-quarantine-") && !name.hasSuffix("-tmp")
  }

  /// The temporary names that an interrupted run may have left; quarantine files are matched by their prefix.
  func isTemporary(_ name: String) -> Bool {
    let main = (snapshot as NSString).lastPathComponent
    return name == main + "-tmp" || name == main + "-journal-tmp" || name == main + "-previous-tmp"
      || name.hasPrefix(main + "-quarantine-") && name.hasSuffix("-tmp")
  }
}
