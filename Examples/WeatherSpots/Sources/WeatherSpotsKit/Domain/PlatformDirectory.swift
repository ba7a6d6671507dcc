public import Foundation

/// The platform's directories for a program's files, on Linux according to the XDG Base Directory Specification.
public enum PlatformDirectory: Sendable {
  /// Settings: `$XDG_CONFIG_HOME` or `~/.config`, on every platform.
  case configuration
  /// Files that can be fetched again: Caches on Apple platforms, elsewhere `$XDG_CACHE_HOME` or `~/.cache`.
  case cache

  /// URL of the directory, which may not exist yet.
  public var url: URL {
    switch self {
    case .configuration: return Self.xdg("XDG_CONFIG_HOME", else: ".config")
    #if canImport(Darwin)
      case .cache: return .cachesDirectory
    #else
      case .cache: return Self.xdg("XDG_CACHE_HOME", else: ".cache")
    #endif
    }
  }

  /// The user's home directory: `$HOME` if that is an absolute path, else the one in the password database.
  ///
  /// Foundation reads the password database first. A test or a shell that sets another `HOME` would then still reach the user's own files.
  public static var home: URL {
    guard let named = ProcessInfo.processInfo.environment["HOME"], named.hasPrefix("/") else { return URL.homeDirectory }
    return URL(filePath: named, directoryHint: .isDirectory)
  }

  /// Returns the directory in an environment variable if that is an absolute path, else a directory in the user's home.
  private static func xdg(_ variable: String, else path: String) -> URL {
    // The specification says that relative paths must be ignored.
    guard let named = ProcessInfo.processInfo.environment[variable], named.hasPrefix("/") else {
      return home.appending(path: path, directoryHint: .isDirectory)
    }
    return URL(filePath: named, directoryHint: .isDirectory)
  }
}
