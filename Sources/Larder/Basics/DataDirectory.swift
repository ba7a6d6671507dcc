public import Foundation

/// The platform's directories for the files of an app.
public enum DataDirectory {
  /// Returns the directory of an app in the platform's default place for data, without making it.
  ///
  /// Backups include the files there. Use ``caches(for:environment:)`` for data that can be fetched again.
  ///
  /// On Linux the place is `$XDG_DATA_HOME`, or `~/.local/share`, as the XDG Base Directory Specification says. A relative path in the
  /// variable is ignored. On Apple platforms it is Application Support. ``LocalRepository/init(filename:schema:options:)`` opens its file
  /// here, and every store makes the directories that its file needs.
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory. By default it is the bundle's identifier or, without one, the name of the process.
  ///   - environment: Variables to read, by default those of the process. Apple platforms use none.
  public static func url(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment: environment, variable: "XDG_DATA_HOME", path: ".local/share"))
    #else
      directory(of: application, in: .applicationSupportDirectory)
    #endif
  }

  /// Returns the directory of an app in the platform's default place for data that can be fetched again, without making it.
  ///
  /// On Linux the place is `$XDG_CACHE_HOME`, or `~/.cache`. On Apple platforms it is Caches, which backups leave out, and from which the
  /// system deletes files when space is short and the app does not run. Keep the file of a ``CachedRepository`` here, and no data of the
  /// user's:
  ///
  /// ```swift
  /// let forecasts = DataDirectory.caches().appending(path: "forecasts.json")
  /// ```
  ///
  /// - Parameters:
  ///   - application: Name of the app's directory, as for ``url(for:environment:)``.
  ///   - environment: Variables to read, by default those of the process. Apple platforms use none.
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
    // A command-line tool has no bundle identifier.
    let name = application ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    return place.appendingPathComponent(name, isDirectory: true)
  }

  #if os(Linux)
    /// Returns the directory that a variable names if that is an absolute path, or else one in the home directory.
    private static func place(environment: [String: String], variable: String, path: String) -> URL {
      // The specification demands that a relative path is ignored.
      if let named = environment[variable], named.hasPrefix("/") { return URL(fileURLWithPath: named, isDirectory: true) }
      // A service may run without this variable.
      return URL(fileURLWithPath: environment["HOME"] ?? NSHomeDirectory(), isDirectory: true)
        .appendingPathComponent(path, isDirectory: true)
    }
  #endif
}
