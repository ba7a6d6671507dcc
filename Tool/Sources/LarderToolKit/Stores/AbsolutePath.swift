internal import Foundation

/// The path of a file from the root on, as file systems of Larder need it.
enum AbsolutePath {
  /// Returns the path that another one means in the current directory.
  static func of(_ path: String) -> String {
    URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL.path(percentEncoded: false)
  }
}
