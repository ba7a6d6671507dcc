import Foundation
import Larder
import LarderSQLite

func choosing(url: URL) async throws {
  let readable = try await LocalRepository<Spot>(jsonFile: url)
  let shared = try await LocalRepository<Spot>(sqliteFile: url)
  let fleeting = try await LocalRepository<Spot>(inMemory: .init("spots"))

  print(readable, shared, fleeting)

  let onDisk = StoreOptions(residency: .onDisk(cache: .megabytes(16)))
  let archive = try await LocalRepository<Spot>(sqliteFile: url, options: onDisk)
  let document = try await LocalRepository<Spot>(jsonFile: url, options: onDisk)  // still one document for `jq`
  let photos = RepositorySchema<Spot>("photos", residency: .onDisk(cache: .megabytes(8)))  // one collection of a store
  let automatic = StoreOptions(residency: .automatic(limit: .megabytes(64)))  // on disk if the values are larger
  print(archive, document, photos, automatic)
}

func buffered(spots: LocalRepository<Spot>, scrollPosition: Spot) async throws {
  try await spots.save(scrollPosition, durability: .buffered)  // survives a crash of the app, not a power cut
  try await spots.flush()  // now it survives that too
}

func options(url: URL) async throws {
  let options = StoreOptions(
    durability: .durable,
    limits: .init(recordBytes: 1 << 20, keyBytes: 256, jsonDepth: 32),
    checkpoint: .init(idle: .seconds(30), bySize: true),
    keepsPreviousSnapshot: true,
    recovery: .strict)
  let spots = try await LocalRepository<Spot>(jsonFile: url, options: options)

  print(spots)
}

func sharing(url: URL) async throws {
  let app = try await LocalRepository<Spot>(sqliteFile: url, options: .init(access: .shared))  // writes; so may others
  let widget = try await LocalRepository<Spot>(sqliteFile: url, options: .init(access: .readOnly, pollInterval: .seconds(2)))
  try await widget.refresh()  // shows now what the app has committed

  print(app)
}

func verifying(url: URL, copy: URL) async throws {
  let store = try await Store.open(JSONFileBackend(file: url))
  let report = await store.verify()  // reads everything back, changes nothing
  if !report.isSound { print(report.problems) }
  try await store.backup(to: copy)  // a complete store, durable when this returns
  try await store.close()
}

func answering(url: URL) async throws -> LocalRepository<Spot>? {
  do {
    return try await LocalRepository<Spot>(jsonFile: url)
  } catch {
    switch error.code {
    case .protectedDataUnavailable: return nil  // the device is not unlocked yet: try again later
    case .locked, .alreadyOpen: return nil  // it is open elsewhere: use that one, or try again
    case .newerSchema: return nil  // ask for an update of the app
    default: throw error  // what is refused is left as it was; show the error, offer the backup
    }
  }
}
