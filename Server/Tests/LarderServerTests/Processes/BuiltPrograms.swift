import Foundation

/// The programs beside the tests, which are a bundle on some systems.
enum BuiltPrograms {
  /// The command of the server, which is built with its tests.
  static let larderServer = path("larder-server")

  static func path(_ name: String) -> String {
    let folder = Bundle(for: EventReader.self).bundleURL
    let places = [folder, folder.deletingLastPathComponent()].map { $0.appendingPathComponent(name).path }
    return places.first { FileManager.default.isExecutableFile(atPath: $0) } ?? places[0]
  }

  /// Whether `weather-spots` was built into the same folder, as `make test` and `make server` do.
  static let hasWeatherSpots: Bool = {
    let isThere = FileManager.default.isExecutableFile(atPath: path("weather-spots"))
    if !isThere { print("weather-spots is not built at \(path("weather-spots")): its processes are not tested; `make server` builds it") }
    return isThere
  }()
}
