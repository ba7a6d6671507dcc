internal import Foundation

/// The things by which a file is known to be another one than before.
struct FileVersion: Sendable, Hashable {
  private let modified: Date?
  private let size: Int
  private let number: Int

  /// Looks at a file; one that cannot be looked at now is looked at again later.
  init(_ path: String) {
    let attributes: [FileAttributeKey: Any]
    do { attributes = try FileManager.default.attributesOfItem(atPath: path) } catch { attributes = [:] }
    modified = attributes[.modificationDate] as? Date
    size = (attributes[.size] as? NSNumber)?.intValue ?? 0
    number = (attributes[.systemFileNumber] as? NSNumber)?.intValue ?? 0
  }
}
