public import Foundation

/// The platform's place for the data of an app.
public enum DataDirectory {
  /// Returns the directory of an app in the platform's default place for data; nothing is made there.
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
    let name = application ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    return place(environment).appendingPathComponent(name, isDirectory: true)
  }

  private static func place(_ environment: [String: String]) -> URL {
    #if os(Linux)
      if let path = environment["XDG_DATA_HOME"], path.hasPrefix("/") { return URL(fileURLWithPath: path, isDirectory: true) }
      return URL(fileURLWithPath: environment["HOME"] ?? NSHomeDirectory(), isDirectory: true)
        .appendingPathComponent(".local/share", isDirectory: true)
    #else
      return URL.applicationSupportDirectory
    #endif
  }
}
