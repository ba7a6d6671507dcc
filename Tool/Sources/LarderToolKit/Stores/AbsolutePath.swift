internal import Foundation

/// Conversion of paths to absolute ones, which Larder's file systems require.
enum AbsolutePath {
  /// Returns a path as an absolute one, relative to the current directory.
  static func of(_ path: String) -> String {
    URL(fileURLWithPath: path, isDirectory: false).standardizedFileURL.path(percentEncoded: false)
  }
}
