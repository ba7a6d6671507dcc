// Calls every public entry of the library once, and checks the answer. Scripts/smoke.sh builds it as releases are built: some code
// that is sound in a debug build crashes in an optimised one. The same script compares it with Docs/API, so that no entry is forgotten.

import Foundation
import Larder

@main struct LibrarySmoke {
  static func main() async {
    do {
      switch CommandLine.arguments.dropFirst().first {
      case "histories": try await inDirectory(SyncHistories.run)
      case "sync": try await inDirectory(SyncFigures.run)
      default: try await inDirectory(run)
      }
    } catch {
      print("Smoke: \(error)")
      exit(1)
    }
  }

  private static func inDirectory(_ run: (URL) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-smoke-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: directory) } catch { print("left behind: \(directory.path)") } }
    try await run(directory)
  }

  private static func run(_ directory: URL) async throws {
    let parts: [(name: String, run: (URL) async throws -> Void)] = [
      ("values", ValueSmoke.run), ("JSON", JSONSmoke.run), ("repositories", RepositorySmoke.run), ("queries", QuerySmoke.run),
      ("stores", StoreSmoke.run), ("migrations", MigrationSmoke.run), ("observing", ObservingSmoke.run), ("caches", CacheSmoke.run),
      ("limits", LimitSmoke.run), ("backends", BackendSmoke.run), ("files", FileSmoke.run), ("blobs", BlobSmoke.run),
      ("doubles", DoubleSmoke.run), ("simulation", SimulationSmoke.run), ("sync", SyncSmoke.run),
    ]
    var failures = 0
    for part in parts {
      let own = directory.appendingPathComponent(part.name, isDirectory: true)
      try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
      do { try await part.run(own) } catch {
        print("\(part.name): \(error)")
        failures += 1
      }
    }
    guard failures == 0 else { throw SmokeFailure(description: "\(failures) parts have failed") }
    print("every public entry of the library was called")
  }
}

/// An answer that was not the expected one.
struct SmokeFailure: Error, CustomStringConvertible {
  let description: String
}

/// Throws unless all answers are the expected ones.
func expect(_ areAsExpected: Bool..., line: Int = #line, file: String = #fileID) throws {
  if areAsExpected.contains(false) { throw SmokeFailure(description: "\(file):\(line): the answer is not the expected one") }
}

/// Runs work that must throw an error with a code, and returns the error.
@discardableResult func expect(
  _ code: RepositoryError.Code, line: Int = #line, _ work: () async throws -> Void
) async throws -> RepositoryError {
  do { try await work() } catch let error as RepositoryError where error.code == code { return error }
  throw SmokeFailure(description: "line \(line): expected the error \(code)")
}

/// Writes a value as JSON, reads it back, and expects it to be the same.
func expectCodable<Value: Codable & Equatable>(_ value: Value, line: Int = #line) throws {
  try expect(try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value)) == value, line: line)
}

/// The record that everything is done with.
struct Jar: Codable, Identifiable, Hashable, Sendable {
  let id: Int
  var label: String
  var shelf: Int
  var weight: Double?
  var latitude = 0.0
  var longitude = 0.0

  static let plum = Jar(id: 1, label: "plum jam", shelf: 1, weight: 2.5, latitude: 48, longitude: 2)
  static let fig = Jar(id: 2, label: "fig jam", shelf: 1, weight: nil, latitude: 49, longitude: 3)
  static let lime = Jar(id: 3, label: "lime pickle", shelf: 2, weight: 1, latitude: -10, longitude: 100)
  static let all = [plum, fig, lime]
  static let schema = RepositorySchema<Jar>(
    "jars", version: 1,
    indexes: [.ordered(\.shelf, \.label), .unique(\.label), .geo(\.latitude, \.longitude), .fullText(\.label)], migrations: [])
}
