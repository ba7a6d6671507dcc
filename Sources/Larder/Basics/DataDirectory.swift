public import Foundation

/// The platform's places for the files of an app.
public enum DataDirectory {
  /// Returns the directory of an app in the platform's default place for data; nothing is made there.
  ///
  /// Backups have what is there. Use ``caches(for:environment:)`` for what can be fetched again.
  ///
  /// On Linux the place is `$XDG_DATA_HOME`, or `~/.local/share`, as the XDG Base Directory Specification says: a relative path in the
  /// variable counts as none. On Apple platforms it is Application Support. ``LocalRepository/init(filename:schema:options:)`` opens its
  /// file here, and every store makes the directories that its file needs.
  ///
  /// - Parameters:
  ///   - application: The name of the app's directory: the bundle's identifier or, without one, the name of the process unless given.
  ///   - environment: The variables to look at: those of the process unless given. Apple platforms use none.
  public static func url(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment, "XDG_DATA_HOME", ".local/share"))
    #else
      directory(of: application, in: .applicationSupportDirectory)
    #endif
  }

  /// Returns the directory of an app in the platform's default place for what can be fetched again; nothing is made there.
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
  ///   - application: The name of the app's directory, as for ``url(for:environment:)``.
  ///   - environment: The variables to look at: those of the process unless given. Apple platforms use none.
  public static func caches(
    for application: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> URL {
    #if os(Linux)
      directory(of: application, in: place(environment, "XDG_CACHE_HOME", ".cache"))
    #else
      directory(of: application, in: .cachesDirectory)
    #endif
  }

  private static func directory(of application: String?, in place: URL) -> URL {
    let name = application ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    return place.appendingPathComponent(name, isDirectory: true)
  }

  #if os(Linux)
    /// Returns the place that a variable names, if it is an absolute path; else one in the home directory.
    private static func place(_ environment: [String: String], _ variable: String, _ path: String) -> URL {
      if let named = environment[variable], named.hasPrefix("/") { return URL(fileURLWithPath: named, isDirectory: true) }
      return URL(fileURLWithPath: environment["HOME"] ?? NSHomeDirectory(), isDirectory: true)
        .appendingPathComponent(path, isDirectory: true)
    }
  #endif
}
