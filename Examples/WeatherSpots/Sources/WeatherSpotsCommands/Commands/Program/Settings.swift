import Foundation
import Larder
import WeatherSpotsKit

/// The settings of all commands: from an option, else the environment, else the configuration file, else built in.
struct Settings {
  /// The name of a setting.
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

    /// The variable of the environment: such as `WEATHER_SPOTS_SYNC_TOKEN`, and for WeatherKit's own keys such as `WEATHERKIT_KEY_FILE`.
    var variable: String {
      let isOfWeatherKit = [Key.keyFile, .keyID, .teamID, .serviceID].contains(self)
      return (isOfWeatherKit ? "WEATHERKIT_" : "WEATHER_SPOTS_") + rawValue.uppercased().replacing("-", with: "_")
    }

    /// Returns a message about an invalid value; `nil` for a valid one.
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
      case .syncToken: value.wholeMatch(of: /[!-~]{1,4096}/) == nil ? "sync-token has printable ASCII characters without blanks" : nil
      case .openMeteoKey:
        value.wholeMatch(of: /[A-Za-z0-9._-]{1,200}/) == nil ? "open-meteo-key has letters, digits, points, hyphens and underscores" : nil
      case .keyFile, .keyID, .teamID, .serviceID: value.isEmpty ? "\(rawValue) is empty" : nil
      }
    }

    /// Whether the value is never shown.
    var isSecret: Bool { self == .openMeteoKey || self == .syncToken }

    /// All keys in words.
    static let list = allCases.dropLast().map(\.rawValue).joined(separator: ", ") + " or " + (allCases.last?.rawValue ?? "")
  }

  /// A value and where it comes from.
  struct Setting {
    let value: String
    let source: String
  }

  private let file: ConfigFile
  private let environment: [String: String]

  /// Reads the configuration and checks it and the environment.
  static func load() throws -> Settings {
    let settings = Settings(file: try ConfigFile.read(), environment: ProcessInfo.processInfo.environment)
    for key in Key.allCases {
      guard let value = settings.environment[key.variable], !value.isEmpty, let problem = key.problem(value) else { continue }
      throw Failure(.configuration, "\(key.variable) in the environment: \(problem)")
    }
    return settings
  }

  /// The value of a key; `nil` when nothing says it.
  subscript(key: Key) -> Setting? {
    if let value = environment[key.variable], !value.isEmpty { return Setting(value: value, source: key.variable) }
    return file.lines[key].map { Setting(value: $0.value, source: "\(file.url.path):\($0.line)") }
  }

  /// The provider of commands that are not told another; a bad configuration is reported when a command begins.
  static var provider: ProviderOptions.ProviderName { value(.provider).flatMap(ProviderOptions.ProviderName.init) ?? .openMeteo }

  /// The units of commands that are not told others.
  static var units: UnitSystem { value(.units).flatMap(UnitSystem.init) ?? .metric }

  /// The server that is asked instead of the provider's own.
  static var api: String? { value(.api) }

  /// The time limit of a request, in seconds.
  static var timeout: Double { value(.timeout).flatMap(Double.init) ?? 10 }

  /// Reads the URL of a server.
  static func server(_ text: String) -> URL? {
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host() != nil else { return nil }
    return url
  }

  private static func value(_ key: Key) -> String? {
    do { return try load()[key]?.value } catch { return nil }
  }
}

/// The configuration file: lines of `key = value`, `#` begins a comment.
struct ConfigFile {
  struct Line {
    let value: String
    let line: Int
  }

  let url: URL
  private let text: [String]
  let lines: [Settings.Key: Line]

  /// Reads the file; none is an empty one.
  ///
  /// - Throws: `Failure` with file and line for anything that is not understood.
  static func read() throws -> ConfigFile {
    let url = location
    guard FileManager.default.fileExists(atPath: url.path) else { return ConfigFile(url: url, text: [], lines: [:]) }
    let bytes: Data
    do { bytes = try Data(contentsOf: url) } catch {
      throw Failure(.configuration, "\(url.path) cannot be read: \(error.reason)")
    }
    var text = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if text.last?.isEmpty == true { text.removeLast() }
    var lines: [Settings.Key: Line] = [:]
    for (index, line) in text.enumerated() {
      func failure(_ reason: String) -> Failure { Failure(.configuration, "\(url.path):\(index + 1): \(reason)") }
      let trimmed = line.trimmingCharacters(in: .whitespaces)
      if trimmed.isEmpty || trimmed.hasPrefix("#") { continue }
      let parts = trimmed.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2 else { throw failure("expected `key = value`") }
      guard let key = Settings.Key(rawValue: parts[0]) else {
        throw failure("unknown key; the keys are \(Settings.Key.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      if let earlier = lines[key] { throw failure("\(key.rawValue) is set in line \(earlier.line) already") }
      if let problem = key.problem(parts[1]) { throw failure(problem) }
      lines[key] = Line(value: parts[1], line: index + 1)
    }
    return ConfigFile(url: url, text: text, lines: lines)
  }

  /// Writes the file anew with another value of a key, or without it; comments and the other lines stay.
  ///
  /// The file is replaced as a whole, durably: an interruption leaves the old one.
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
      // It may have a key.
      try OutputFile(url.path).write(bytes, permissions: 0o600)
      try files.syncDirectory(directory)
    } catch let failure as Failure { throw failure } catch {
      throw Failure(.noOutput, "\(url.path) cannot be written: \(error.reason)")
    }
  }

  private static var location: URL { PlatformDirectory.configuration.url.appending(path: "weather-spots/config") }
}
