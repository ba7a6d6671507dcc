import Foundation

/// The command `larder-server` that was built with the tests.
enum ServerCommand {
  /// Its path beside the tests, which are a bundle on some systems.
  static let path: String = {
    let folder = Bundle(for: EventReader.self).bundleURL
    let places = [folder, folder.deletingLastPathComponent()].map { $0.appendingPathComponent("larder-server").path }
    return places.first { FileManager.default.isExecutableFile(atPath: $0) } ?? places[0]
  }()
}
