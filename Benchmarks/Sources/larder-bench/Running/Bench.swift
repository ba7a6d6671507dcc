import BenchmarkRecords
import BenchmarkReport
import Foundation
import Synchronization

/// One run: how many records, which engines, and where progress is told.
struct Bench: Sendable {
  let records: Int
  let isQuick: Bool
  /// The engines that were chosen; all where none was.
  let engines: Set<Engine>
  let scenario: String

  /// Returns fewer rounds for a try-out.
  func rounds(_ usual: Int) -> Int { isQuick ? min(usual, 3) : usual }

  /// Returns fewer operations for a try-out.
  func operations(_ usual: Int) -> Int { isQuick ? max(1, usual / 10) : usual }

  func wants(_ engine: Engine) -> Bool { engines.isEmpty || engines.contains(engine) }

  func wanted(_ all: [Engine]) -> [Engine] { all.filter(wants) }

  func places() throws -> [Place] { try Self.places(records) }

  /// Returns that many places, which are made once and kept.
  static func places(_ count: Int) throws -> [Place] {
    try kept.withLock { places in
      if places.count < count { places = try PlaceFile.places(count) }
      return Array(places.prefix(count))
    }
  }

  private static let kept = Mutex<[Place]>([])

  /// Tells a person who waits where the run is.
  func progress(_ text: String) { Self.tell("\(scenario): \(text)") }

  static func tell(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
  }
}

/// A reason for which a figure would not be worth anything.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Runs a body with a directory of its own.
func withDirectory<R>(_ body: (URL) async throws -> R) async throws -> R {
  let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-bench-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }  // what stays is the system's to clean
  return try await body(directory)
}

extension URL {
  /// Returns a directory in this one, which is made.
  func making(_ name: String) throws -> URL {
    let directory = appendingPathComponent(name)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return directory
  }
}
