public import Foundation

/// The platform's directories for the files of an app.
public enum DataDirectory {
  /// Returns the directory of an app in the platform's default place for data, without creating the directory.
  ///
  /// Backups of the device include the files in this directory. Use ``caches(for:environment:)`` for data that can be fetched again.
  ///
  /// On Linux the place is `$XDG_DATA_HOME`, or `~/.local/share` if the variable is not set, as the XDG Base Directory Specification says.
  /// If the variable holds a relative path, the variable is ignored. On Apple platforms the place is Application Support.
  /// ``LocalRepository/init(filename:schema:options:)`` opens its file in this directory, and every store creates the directories that its
  /// file needs.
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory, by default the bundle's identifier or, without a bundle identifier, the name of the
  ///     process.
  ///   - environment: Environment variables to read, by default those of the process. On Apple platforms no variable is read.
  public static func url(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment: environment, variable: "XDG_DATA_HOME", path: ".local/share"))
    #else
      directory(of: application, in: .applicationSupportDirectory)
    #endif
  }

  /// Returns the directory of an app in the platform's default place for data that can be fetched again, without creating it.
  ///
  /// On Linux the place is `$XDG_CACHE_HOME`, or `~/.cache` if the variable is not set. On Apple platforms the place is Caches. Backups of
  /// the device leave the directory Caches out, and the system deletes files from Caches when space is short and the app does not run. Keep
  /// the file of a ``CachedRepository`` in this directory, but no data that only the user can supply:
  ///
  /// ```swift
  /// let forecasts = DataDirectory.caches().appending(path: "forecasts.json")
  /// ```
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory, as for ``url(for:environment:)``.
  ///   - environment: Environment variables to read, by default those of the process. On Apple platforms no variable is read.
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
    // A command-line tool has no bundle identifier, so the name of its process takes its place.
    let name = application ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    return place.appendingPathComponent(name, isDirectory: true)
  }

  #if os(Linux)
    /// Returns the directory that an environment variable names by an absolute path, or else the directory `path` in the home directory.
    private static func place(environment: [String: String], variable: String, path: String) -> URL {
      // The XDG specification says that a relative path in the variable must be ignored.
      if let named = environment[variable], named.hasPrefix("/") { return URL(fileURLWithPath: named, isDirectory: true) }
      // A service may run without the variable `HOME`, so `NSHomeDirectory()` takes its place.
      return URL(fileURLWithPath: environment["HOME"] ?? NSHomeDirectory(), isDirectory: true)
        .appendingPathComponent(path, isDirectory: true)
    }
  #endif
}
