public import Foundation

/// The platform's directories for a program's files, on Linux according to the XDG Base Directory Specification.
///
/// They may not exist yet.
public enum PlatformDirectory {
  /// Settings: `$XDG_CONFIG_HOME` or `~/.config`, on every platform.
  public static var configuration: URL { directory(in: "XDG_CONFIG_HOME") ?? home.appending(path: ".config", directoryHint: .isDirectory) }

  /// Files that can be fetched again: Caches on Apple platforms, elsewhere `$XDG_CACHE_HOME` or `~/.cache`.
  public static var cache: URL {
    #if canImport(Darwin)
      .cachesDirectory
    #else
      directory(in: "XDG_CACHE_HOME") ?? home.appending(path: ".cache", directoryHint: .isDirectory)
    #endif
  }

  /// The user's home directory: `$HOME` if that is an absolute path, else the one in the password database.
  ///
  /// Foundation reads the password database first. A test or a shell that sets another `HOME` would then still reach the user's own files.
  public static var home: URL { directory(in: "HOME") ?? .homeDirectory }

  /// Returns the directory in an environment variable if that is an absolute path.
  private static func directory(in variable: String) -> URL? {
    // The specification says that relative paths must be ignored.
    guard let named = ProcessInfo.processInfo.environment[variable], named.hasPrefix("/") else { return nil }
    return URL(filePath: named, directoryHint: .isDirectory)
  }
}
