import Foundation
import Larder
import LarderBlobs
import LarderSQLite

struct Entry: Codable, Identifiable, Sendable {
  let id: String
  var text: String
}

/// A store of records, opened as an app opens it: with all defaults.
final class LarderRecords: Subject {
  private let store: Store
  private let entries: LocalRepository<Entry>

  init(_ directory: URL, isJSON: Bool) async throws {
    let backend: any StorageBackend =
      isJSON
      ? JSONFileBackend(file: directory.appendingPathComponent("entries.json"))
      : SQLiteBackend(file: directory.appendingPathComponent("entries.sqlite"))
    store = try await Store.open(backend)
    entries = try await store.repository(.init("entries"))
  }

  func write(_ step: Step) async throws {
    let saved = step.changes.compactMap { id, text in text.map { Entry(id: id, text: $0) } }
    let deleted = step.changes.filter { $0.value == nil }.map(\.key)
    switch (saved.count, deleted.count) {
    case (0, 0): try await entries.checkpoint()
    case (1, 0): try await entries.save(saved[0])
    case (0, 1): try await entries.delete(deleted[0])
    case (_, 0): try await entries.save(contentsOf: saved)
    default:
      try await store.transaction { [entries] transaction in
        for id in deleted { try transaction.delete(id, in: entries) }
        for entry in saved { try transaction.save(entry, in: entries) }
      }
    }
  }

  func contents() async throws -> Contents {
    let report = await store.verify()
    if !report.isSound { throw Failure("verify: \(report.problems)") }
    return Contents(uniqueKeysWithValues: try await entries.loadAll(strict: true).map { ($0.id, $0.text) })
  }

  func close() async throws { try await store.close() }
}

/// A store of blobs.
final class LarderBlobFiles: Subject {
  private let blobs: BlobStore

  init(_ directory: URL) async throws {
    blobs = try await BlobStore(directory: directory.appendingPathComponent("blobs"), limits: .init(memoryCount: 0))
  }

  func write(_ step: Step) async throws {
    for (key, text) in step.changes {
      if let text { try await blobs.save(Data(text.utf8), for: key) } else { try await blobs.remove(key) }
    }
  }

  func contents() async throws -> Contents {
    var contents: Contents = [:]
    for key in blobs.persistedKeys {
      guard let blob = try await blobs.blob(for: key) else { throw Failure("\(key) is listed, and not there") }
      contents[key] = String(decoding: blob.data, as: UTF8.self)
    }
    return contents
  }

  func close() async throws { try await blobs.close() }
}
