import Foundation
import LarderTesting

@testable import Larder

/// A record as the first version of an app had it, and the versions after it.
struct PlaceV1: Codable, Identifiable, Hashable, Sendable {
  let id: String
  var title: String
  var count: Int
}

struct PlaceV2: Codable, Identifiable, Hashable, Sendable {
  let id: String
  var name: String
  var count: Int
}

struct Place: Codable, Identifiable, Hashable, Sendable {
  let id: String
  var name: String
  var count: Int
  var timeZone: String
}

struct StepFailed: Error {}

/// A place for a store that versions of an app open one after the other.
final class MigrationShelf {
  let place: BackendPlace
  init(_ backend: TestBackend) throws { place = try backend.factory.makePlace() }
  deinit { place.remove() }

  static let backends: [TestBackend] = [.memory, .json, .sqlite]
  static let onDisk: [TestBackend] = [.json, .sqlite]

  /// Each step adds to the count, so that a second time would show.
  static let steps: [Migration] = [
    .init(from: 1, PlaceV1.self, to: PlaceV2.self) { PlaceV2(id: $0.id, name: $0.title, count: $0.count + 1) },
    .init(from: 2) { object in
      object["timeZone"] = "UTC"
      object["count"] = .number(JSONNumber((object["count"]?.intValue ?? 0) + 100))
    },
  ]

  static let schema = RepositorySchema<Place>("places", version: 3, migrations: steps)

  /// Writes records as versions 1 and 2 of the app did: `1-0`, `1-1`, … and `2-0`, `2-1`, …, whose counts are their numbers.
  func fill(first: Int = 10, second: Int = 10) async throws {
    let backend = try place.makeBackend()
    let v1 = try await LocalRepository<PlaceV1>(backend: backend, schema: .init("places"))
    try await v1.save(contentsOf: (0..<first).map { PlaceV1(id: "1-\($0)", title: "place \($0)", count: $0) })
    try await v1.close()
    if second == 0 { return }
    let v2 = try await LocalRepository<PlaceV2>(
      backend: try place.makeBackend(), schema: .init("places", version: 2, migrations: [Self.steps[0]]), options: Self.options(.manual))
    try await v2.save(contentsOf: (0..<second).map { PlaceV2(id: "2-\($0)", name: "place \($0)", count: $0) })
    try await v2.close()
  }

  /// The records as version 3 must see them.
  static func expected(first: Int = 10, second: Int = 10) -> [Place] {
    let places =
      (0..<first).map { Place(id: "1-\($0)", name: "place \($0)", count: $0 + 101, timeZone: "UTC") }
      + (0..<second).map { Place(id: "2-\($0)", name: "place \($0)", count: $0 + 100, timeZone: "UTC") }
    return places.sorted { RecordKey($0.id) < RecordKey($1.id) }
  }

  static func options(
    _ mode: StoreOptions.Migration.Mode = .lazy, backup: StoreOptions.Migration.Backup = .declined, batchSize: Int = 256,
    access: StoreOptions.Access = .exclusive, progress: (@Sendable (MigrationProgress) -> Void)? = nil
  ) -> StoreOptions {
    StoreOptions(
      access: access, checkpoint: .manual, pollInterval: nil,
      migration: .init(mode: mode, backup: backup, batchSize: batchSize, progress: progress))
  }

  func open(
    _ options: StoreOptions = MigrationShelf.options(), schema: RepositorySchema<Place> = MigrationShelf.schema
  ) async throws -> LocalRepository<Place> {
    try await LocalRepository(backend: try place.makeBackend(), schema: schema, options: options)
  }

  func openFaulty(
    _ options: StoreOptions = MigrationShelf.options(), prepare: (FaultInjectingBackend) -> Void = { _ in }
  ) async throws -> (FaultInjectingBackend, LocalRepository<Place>) {
    let backend = FaultInjectingBackend(try place.makeBackend())
    prepare(backend)
    return (backend, try await LocalRepository(backend: backend, schema: Self.schema, options: options))
  }

  /// The stored records of a closed store, as the backend has them.
  func records() throws -> [String: StoredRecord] {
    let backend = try place.makeBackend()
    var records: [String: StoredRecord] = [:]
    _ = try backend.openAndRecover(StoreOptions()) { records[$0.key.text] = $0 }
    try backend.close()
    return records
  }

  /// The names and contents of the files beside the main one, and its own.
  func files() throws -> [String: Data] { try Self.files(of: place.file?.deletingLastPathComponent()) }

  static func files(of directory: URL?) throws -> [String: Data] {
    guard let directory else { return [:] }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    return try Dictionary(names.map { ($0, try Data(contentsOf: directory.appending(path: $0))) }) { $1 }
  }
}
