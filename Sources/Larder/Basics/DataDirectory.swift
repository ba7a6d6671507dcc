public import Foundation

/// The platform's directories for the files of an app.
public enum DataDirectory {
  /// Returns the URL of an app's directory in the platform's standard location for data, without creating the directory.
  ///
  /// Backups of an Apple device include the files in the directory that `url(for:environment:)` returns. Use ``caches(for:environment:)``
  /// for data that the app can fetch again.
  ///
  /// On Linux the app's directory is in `$XDG_DATA_HOME`, or in `~/.local/share` if the variable is not set, as the XDG Base Directory
  /// Specification says. If `$XDG_DATA_HOME` holds a relative path, the variable is ignored. On Apple platforms the app's directory is in
  /// Application Support. ``LocalRepository/init(filename:schema:options:)`` opens its file in the directory that `url(for:environment:)`
  /// returns by default, and every store creates the directories that its file needs.
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory, by default the bundle's identifier or, without a bundle identifier, the name of the
  ///     process.
  ///   - environment: Environment variables to read, by default those of the process. On Apple platforms no environment variable is
  ///     read.
  public static func url(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment: environment, variable: "XDG_DATA_HOME", path: ".local/share"))
    #else
      directory(of: application, in: .applicationSupportDirectory)
    #endif
  }

  /// Returns the URL of an app's directory in the platform's standard location for caches, without creating the directory.
  ///
  /// On Linux the app's directory is in `$XDG_CACHE_HOME`, or in `~/.cache` if the variable is not set. On Apple platforms the app's
  /// directory is in Caches. Backups of the device leave the directory Caches out, and the system deletes files from Caches when space is
  /// short and the app does not run. Keep the file of a ``CachedRepository`` in the directory that `caches(for:environment:)` returns, but
  /// no data that only the user can supply:
  ///
  /// ```swift
  /// let forecasts = DataDirectory.caches().appending(path: "forecasts.json")
  /// ```
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory, as for ``url(for:environment:)``.
  ///   - environment: Environment variables to read, by default those of the process. On Apple platforms no environment variable is
  ///     read.
  public static func caches(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment: environment, variable: "XDG_CACHE_HOME", path: ".cache"))
    #else
      directory(of: application, in: .cachesDirectory)
    #endif
  }

  private static func directory(of application: String?, in place: URL) -> URL {
    // A command-line tool has no bundle identifier, so the name of its process is used instead.
    let name = application ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    return place.appendingPathComponent(name, isDirectory: true)
  }

  #if os(Linux)
    /// Returns the directory that an environment variable names by an absolute path, or else the directory `path` in the home directory.
    private static func place(environment: [String: String], variable: String, path: String) -> URL {
      // The XDG specification says that a relative path in the environment variable must be ignored.
      if let named = environment[variable], named.hasPrefix("/") { return URL(fileURLWithPath: named, isDirectory: true) }
      // A service may run without the environment variable `HOME`, so `NSHomeDirectory()` is used instead.
      return URL(fileURLWithPath: environment["HOME"] ?? NSHomeDirectory(), isDirectory: true)
        .appendingPathComponent(path, isDirectory: true)
    }
  #endif
}
