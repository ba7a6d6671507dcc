import Foundation
import Larder
import WeatherSpotsKit

/// Settings of all commands, read from the environment and the configuration file.
///
/// An option overrides both, and a built-in default applies where none is set.
struct Settings {
  /// Name of a setting, as in the configuration file.
  enum Key: String, CaseIterable {
    case provider
    case units
    case store
    case api
    case timeout
    case syncToken = "sync-token"
    case openMeteoKey = "open-meteo-key"
    case keyFile = "key-file"
    case keyID = "key-id"
    case teamID = "team-id"
    case serviceID = "service-id"

    /// Environment variable of the key, such as `WEATHER_SPOTS_SYNC_TOKEN`, or `WEATHERKIT_KEY_FILE` for WeatherKit's own keys.
    var variable: String {
      let isOfWeatherKit = [Key.keyFile, .keyID, .teamID, .serviceID].contains(self)
      return (isOfWeatherKit ? "WEATHERKIT_" : "WEATHER_SPOTS_") + rawValue.uppercased().replacing("-", with: "_")
    }

    /// Returns an error message for an invalid value, or `nil` for a valid one.
    func problem(_ value: String) -> String? {
      switch self {
      case .provider:
        ProviderOptions.ProviderName(rawValue: value) == nil
          ? "provider is one of \(ProviderOptions.ProviderName.allCases.map(\.rawValue).joined(separator: ", "))" : nil
      case .units:
        UnitSystem(rawValue: value) == nil ? "units is one of \(UnitSystem.allCases.map(\.rawValue).joined(separator: ", "))" : nil
      case .store:
        ["json", "sqlite"].contains(URL(filePath: value).pathExtension) ? nil : "the name of a store ends in .sqlite or .json"
      case .api: Settings.server(value) == nil ? "api is a URL such as http://127.0.0.1:8080" : nil
      case .timeout: Double(value).map { (0.1...600).contains($0) } ?? false ? nil : "timeout is a number of seconds from 0.1 to 600"
      // The token is sent in the header field Authorization, where RFC 6750 allows a bearer token no blank and no control character.
      case .syncToken: value.wholeMatch(of: /[!-~]{1,4096}/) == nil ? "sync-token has printable ASCII characters without blanks" : nil
      case .openMeteoKey:
        value.wholeMatch(of: /[A-Za-z0-9._-]{1,200}/) == nil ? "open-meteo-key has letters, digits, points, hyphens and underscores" : nil
      case .keyFile, .keyID, .teamID, .serviceID: value.isEmpty ? "\(rawValue) is empty" : nil
      }
    }

    /// True for API keys and tokens, which are never shown.
    var isSecret: Bool { self == .openMeteoKey || self == .syncToken }

    /// All key names as an English list.
    static let list = allCases.dropLast().map(\.rawValue).joined(separator: ", ") + " or " + (allCases.last?.rawValue ?? "")
  }

  /// A setting's value and its source, for example a file and line.
  struct Setting {
    let value: String
    let source: String
  }

  private let file: ConfigFile
  private let environment: [String: String]

  /// Reads the configuration file, and checks it and the environment.
  ///
  /// - Throws: `Failure` with `configuration` for the first invalid value.
  static func load() throws -> Settings {
    let settings = Settings(file: try ConfigFile.read(), environment: ProcessInfo.processInfo.environment)
    for key in Key.allCases {
      // An empty variable counts as unset, which is how a shell script clears one.
      guard let value = settings.environment[key.variable], !value.isEmpty, let problem = key.problem(value) else { continue }
      throw Failure(.configuration, "\(key.variable) in the environment: \(problem)")
    }
    return settings
  }

  /// Value of a key, or `nil` if neither the environment nor the file sets it.
  subscript(key: Key) -> Setting? {
    if let value = environment[key.variable], !value.isEmpty { return Setting(value: value, source: key.variable) }
    return file.lines[key].map { Setting(value: $0.value, source: "\(file.url.path):\($0.line)") }
  }

  /// Default of `--provider`, from the setting or else Open-Meteo.
  ///
  /// An invalid configuration is reported when the command runs.
  static var provider: ProviderOptions.ProviderName { value(.provider).flatMap(ProviderOptions.ProviderName.init) ?? .openMeteo }

  /// Default of `--units`, from the setting or else metric.
  static var units: UnitSystem { value(.units).flatMap(UnitSystem.init) ?? .metric }

  /// URL of a server that replaces the provider's own, if it is set.
  static var api: String? { value(.api) }

  /// Time limit of a request in seconds, 10 by default.
  static var timeout: Double { value(.timeout).flatMap(Double.init) ?? 10 }

  /// Parses the URL of a server, which needs `http` or `https` and a host.
  static func server(_ text: String) -> URL? {
    // `URL(string:)` also accepts texts without a scheme or a host, to which no request can be sent.
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host() != nil else { return nil }
    return url
  }

  private static func value(_ key: Key) -> String? {
    // Defaults of options cannot throw, and `--help` must work with a bad file. The command itself calls `load` and reports it.
    do { return try load()[key]?.value } catch { return nil }
  }
}

/// Configuration file with lines of `key = value`, and comment lines that begin with `#`.
struct ConfigFile {
  let url: URL
  private let text: [String]
  let lines: [Settings.Key: (value: String, line: Int)]

  /// Reads the file, and returns an empty configuration if there is none.
  ///
  /// - Throws: `Failure` with file and line for a line that cannot be parsed.
  static func read() throws -> ConfigFile {
    let url = location
    guard FileManager.default.fileExists(atPath: url.path) else { return ConfigFile(url: url, text: [], lines: [:]) }
    let bytes: Data
    do { bytes = try Data(contentsOf: url) } catch {
      throw Failure(.configuration, "\(url.path) cannot be read: \(error.reason)")
    }
    // The line break of Windows, "\r\n", is one character of Swift, and does not equal "\n".
    var text = String(decoding: bytes, as: UTF8.self)
      .split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map(String.init)
    // The part behind the last line break is no line. Kept, it would add a blank line at each writing.
    if text.last?.isEmpty == true { text.removeLast() }
    var lines: [Settings.Key: (value: String, line: Int)] = [:]
    for (index, line) in text.enumerated() {
      func failure(_ reason: String) -> Failure { Failure(.configuration, "\(url.path):\(index + 1): \(reason)") }
      let trimmed = line.trimmingCharacters(in: .whitespaces)
      if trimmed.isEmpty || trimmed.hasPrefix("#") { continue }
      // A value may hold an equals sign itself, as the URL of a server may.
      let parts = trimmed.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2 else { throw failure("expected `key = value`") }
      guard let key = Settings.Key(rawValue: parts[0]) else {
        throw failure("unknown key; the keys are \(Settings.Key.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      // Two lines for a key are an error: either choice would surprise the user who edits the other one.
      if let earlier = lines[key] { throw failure("\(key.rawValue) is set in line \(earlier.line) already") }
      if let problem = key.problem(parts[1]) { throw failure(problem) }
      lines[key] = (parts[1], index + 1)
    }
    return ConfigFile(url: url, text: text, lines: lines)
  }

  /// Rewrites the file with a new value for the key, or without the key, and keeps comments and other lines.
  ///
  /// The file is replaced atomically and durably, so that an interruption leaves the old one.
  func writing(_ key: Settings.Key, _ value: String?) throws {
    var text = text
    if let line = lines[key]?.line {
      if let value { text[line - 1] = "\(key.rawValue) = \(value)" } else { text.remove(at: line - 1) }
    } else if let value {
      text.append("\(key.rawValue) = \(value)")
    }
    let bytes = Data(text.map { $0 + "\n" }.joined().utf8)
    let (files, directory) = (POSIXFileSystem(), url.deletingLastPathComponent().path)
    do {
      try files.createDirectory(directory)
      // Keys and tokens may be in the file, so only its owner may read it.
      try OutputFile(url.path).write(bytes, permissions: 0o600)
      // The rename is durable only once the directory is on the disk.
      try files.syncDirectory(directory)
    } catch let failure as Failure { throw failure } catch {
      throw Failure(.noOutput, "\(url.path) cannot be written: \(error.reason)")
    }
  }

  private static var location: URL { PlatformDirectory.configuration.appending(path: "weather-spots/config") }
}
