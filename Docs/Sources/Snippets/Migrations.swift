import Foundation
import Larder
import LarderSQLite

nonisolated struct PierV1: Codable, Sendable {
  let id: UUID
  var title: String
}

nonisolated struct PierV2: Codable, Sendable {
  let id: UUID
  var name: String

  init(_ old: PierV1) {
    id = old.id
    name = old.title
  }
}

nonisolated struct Pier: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var timeZone: String
}

nonisolated enum Piers {
  static let schema = RepositorySchema<Pier>(
    "piers", version: 3,
    migrations: [
      .init(from: 1, PierV1.self, to: PierV2.self) { PierV2($0) },
      .init(from: 2) { object in object["timeZone"] = "UTC" },
    ])
}

nonisolated struct Harbour: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var country: String
  var depth: Double
  var timeZone: String
}

nonisolated enum Harbours {
  static let schema = RepositorySchema<Harbour>(
    "harbours", version: 3,
    indexes: [.ordered(\.country, \.name)],
    migrations: [
      .init(from: 1) { object in
        object.rename("title", to: "name")
        object["country"] = object["address", "country"]?.stringValue.map { .string($0) } ?? "JP"
        object["address"] = nil
      },
      .init(from: 2) { object in
        let feet = object["depthInFeet"]?.doubleValue ?? 0
        object["depth"] = JSONValue(feet * 0.3048)
        object["depthInFeet"] = nil
        object["timeZone"] = "UTC"
      },
    ])
}

nonisolated struct Buoy: Codable, Identifiable, Sendable {
  struct Address: Codable, Sendable {
    var zip: String?
  }

  let id: UUID
  var place: String
  var unit: String
  var address: Address?
}

nonisolated enum Buoys {
  static let schema = RepositorySchema<Buoy>(
    "buoys", version: 3,
    migrations: [
      .init(from: 1, .rename("town", to: "place"), .set("unit", "m"), .remove("draft")),
      .init(from: 2, .move("zip", to: ["address", "zip"])),
    ])
}

func openPiers(url: URL) async throws {
  let piers = try await LocalRepository<Pier>(sqliteFile: url, schema: Piers.schema)
  let all = try await piers.loadAll()  // complete at once, whatever version the records are stored at

  print(all.count)
}

func openPiersEagerly(url: URL) async throws {
  let options = StoreOptions(
    migration: .init(mode: .eager, progress: { progress in print("\(progress.done) of \(progress.total)") }))
  let piers = try await LocalRepository<Pier>(sqliteFile: url, schema: Piers.schema, options: options)
  let progress = piers.migrationProgress
  if progress.phase == .stopped { print(progress.error?.code ?? .unsupported) }

  print(progress.backupFile ?? "no copy")
}

func whatFailed(piers: LocalRepository<Pier>) async throws {
  try await piers.finishMigration()
  for failure in piers.migrationProgress.failures {
    print("record #\(failure.key.hash) of version \(failure.schemaVersion): \(failure.error)")
  }
}

func tryPiers(url: URL) async throws {
  let report = try await Store.dryRun(SQLiteBackend(file: url), schema: Piers.schema)
  for version in report.versions {
    print("version \(version.version): \(version.count) records, \(version.failureCount) fail, \(version.duration)")
  }

  for failure in report.failures { print(failure.error) }
}
