import Foundation
import Larder

extension CrashWorkload {
  static let file = URL(fileURLWithPath: "/data/app/spots.json")
  static let path = file.path

  /// Does it all on a JSON store.
  func run(on files: any FileSystem, tuning: JSONFileBackend.Tuning, _ promise: (Promise) -> Void) throws {
    try run(on: { JSONFileBackend(file: Self.file, fileSystem: files, tuning: tuning) }, promise)
  }
}
