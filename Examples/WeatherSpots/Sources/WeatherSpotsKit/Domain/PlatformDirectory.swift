public import Foundation

/// The directories that the platform has for the files of a program: those of the XDG Base Directory Specification on Linux.
public enum PlatformDirectory: Sendable {
  /// Settings: `$XDG_CONFIG_HOME` or `~/.config`, on every platform.
  case configuration
  /// Files that can be fetched again: `$XDG_CACHE_HOME` or `~/.cache`; Caches on Apple platforms.
  case cache

  /// The directory, which may not exist yet.
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

  /// The user's home directory: `$HOME` where that is an absolute path, else that of the password database.
  ///
  /// Foundation asks the password database first. A test or a shell that sets another `HOME` would then still reach the user's own files.
  public static var home: URL {
    guard let named = ProcessInfo.processInfo.environment["HOME"], named.hasPrefix("/") else { return URL.homeDirectory }
    return URL(filePath: named, directoryHint: .isDirectory)
  }

  /// Returns the directory that a variable names, if it is an absolute path, as the specification wants; else one in the home directory.
  private static func xdg(_ variable: String, else path: String) -> URL {
    guard let named = ProcessInfo.processInfo.environment[variable], named.hasPrefix("/") else {
      return home.appending(path: path, directoryHint: .isDirectory)
    }
    return URL(filePath: named, directoryHint: .isDirectory)
  }
}
