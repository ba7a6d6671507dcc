import ArgumentParser
import Foundation
import WeatherSpotsKit

struct Config: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows and changes the settings of all commands.",
    discussion: """
      An option overrides the environment, the environment overrides the configuration file, and the file overrides the default. The file is \
      weather-spots/config in $XDG_CONFIG_HOME or ~/.config, with lines such as `units = imperial`. An invalid line ends every \
      command with exit code 78, and is reported with file and line. The keys are \(Settings.Key.list). The last four are WeatherKit's, and only the path of \
      that key is kept here, never the key; open-meteo-key is that of a customer of Open-Meteo, and is never shown; it is sent only to \
      open-meteo.com and the hosts below it over https, and to this machine, whatever api says.
      """,
    subcommands: [ConfigShow.self, ConfigSet.self, ConfigUnset.self], defaultSubcommand: ConfigShow.self)
}

struct ConfigShow: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows every setting and its source.",
    discussion: "The source is an option, a variable of the environment, a line of the configuration file, or \"default\".")

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let settings = try Settings.load()
    let rows = Settings.Key.allCases.map { key in
      // Among the settings, only the store can also be given as an option of this command.
      if key == .store, let store = globals.store { return Row(key, .init(value: store, source: "--store")) }
      return Row(key, settings[key])
    }
    guard !globals.json else { return try writeJSON(rows) }
    let width = rows.map { ($0.value ?? "-").count }.max() ?? 0
    for row in rows {
      // `padding(toLength:)` cuts longer texts, and `open-meteo-key` is longer than 12 characters.
      try writeText(
        "\(row.key.padding(toLength: max(12, row.key.count + 2), withPad: " ", startingAt: 0))"
          + "\((row.value ?? "-").padding(toLength: width, withPad: " ", startingAt: 0))  \(row.source)\n")
    }
  }

  private struct Row: Encodable {
    let key: String
    @NullEncoded var value: String?
    let source: String

    init(_ key: Settings.Key, _ setting: Settings.Setting?) {
      self.key = key.rawValue
      // Keys and tokens must not end up in a terminal's history or a bug report.
      let shown = setting.map { key.isSecret ? "(not shown)" : $0.value } ?? Self.standard(key)
      value = shown
      source = setting?.source ?? (shown == nil ? "not set" : "default")
    }

    private static func standard(_ key: Settings.Key) -> String? {
      switch key {
      case .provider: ProviderOptions.ProviderName.openMeteo.rawValue
      case .units: UnitSystem.metric.rawValue
      case .store: GlobalOptions.standardStore.path
      case .timeout: "10"
      case .api, .openMeteoKey, .syncToken, .keyFile, .keyID, .teamID, .serviceID: nil
      }
    }
  }
}

struct ConfigSet: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Sets a value in the configuration file.",
    discussion:
      "Other lines and comments stay as they are. Paths are kept as absolute ones. Example: weather-spots config set units imperial")

  @Argument(help: "The key: \(Settings.Key.list).", transform: settingKey)
  var key: Settings.Key

  @Argument(help: "The value.")
  var value: String

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    // `ConfigFile.read` trims values. Without a trim here, a blank `key-id` would be written, and later commands would refuse the file.
    let value = value.trimmingCharacters(in: .whitespaces)
    if let problem = key.problem(value) { throw Failure(.usage, problem) }
    // A line break would begin another line of the file, and so another setting.
    guard !value.contains(where: \.isNewline) else { throw Failure(.usage, "expected a value of one line") }
    // A relative path would mean another file in each working directory.
    let isPath = key == .store || key == .keyFile
    try ConfigFile.read().writing(key, isPath ? URL(filePath: value).absoluteURL.path : value)
  }
}

struct ConfigUnset: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "unset", abstract: "Removes a value from the configuration file.",
    discussion: "Removing a key that is not set is no failure. The environment does not change.")

  @Argument(help: "The key: \(Settings.Key.list).", transform: settingKey)
  var key: Settings.Key

  @OptionGroup var globals: GlobalOptions

  func execute() async throws { try ConfigFile.read().writing(key, nil) }
}

private func settingKey(_ text: String) throws -> Settings.Key {
  guard let key = Settings.Key(rawValue: text) else {
    throw ValidationError("The keys are \(Settings.Key.allCases.map(\.rawValue).joined(separator: ", ")).")
  }
  return key
}
