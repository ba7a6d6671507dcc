import Foundation
import Larder

/// The contents of a whole-file store, and their one form as bytes: a line with the format, its version and a checksum, then JSON.
nonisolated struct Contents: Sendable {
  let storeID: UUID
  var commit: UInt64 = 0
  /// The newest deletion whose tombstone was forgotten.
  var horizon = Revision.zero
  var records: [RecordAddress: StoredRecord] = [:]

  init(storeID: UUID) { self.storeID = storeID }

  private static let opening = "whole-file 1 "

  private struct Form: Codable {
    struct Record: Codable {
      let collection, key: String
      let revision: Revision
      let version: Int
      let value: Data?
    }
    let store: UUID
    let commit: UInt64
    let horizon: Revision
    let records: [Record]
  }

  func bytes(file: String) throws(RepositoryError) -> Data {
    let form = Form(
      store: storeID, commit: commit, horizon: horizon,
      records: records.values.sorted { $0.address < $1.address }.map {
        .init(collection: $0.collection, key: $0.key.text, revision: $0.revision, version: $0.schemaVersion, value: $0.value)
      })
    let json: Data
    do { json = try JSONEncoder().encode(form) } catch { throw RepositoryError(.encodingFailed, file: file, underlying: error) }
    return Data("\(Self.opening)\(json.withUnsafeBytes { CRC32C.checksum($0) })\n".utf8) + json
  }

  init(_ data: Data, file: String) throws(RepositoryError) {
    let parts = data.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].starts(with: Self.opening.utf8) else {
      throw RepositoryError(.notOurStore, "not a whole-file store", file: file, offset: 0)
    }
    let checksum = parts[1].withUnsafeBytes { CRC32C.checksum($0) }
    guard parts[0].elementsEqual("\(Self.opening)\(checksum)".utf8) else {
      throw RepositoryError(.corrupted, "the checksum differs", file: file, offset: UInt64(parts[0].count + 1))
    }
    let form: Form
    do {
      form = try JSONDecoder().decode(Form.self, from: parts[1])
    } catch {
      throw RepositoryError(.corrupted, "the contents do not decode", file: file, underlying: error)
    }
    self.init(storeID: form.store)
    commit = form.commit
    horizon = form.horizon
    for record in form.records {
      let stored = StoredRecord(
        collection: record.collection, key: RecordKey(record.key), revision: record.revision, schemaVersion: record.version,
        value: record.value)
      records[stored.address] = stored
    }
  }

  /// Keeps the newest tombstones only: readers that resume from an older commit must read everything anew.
  mutating func forgetTombstones(beyond limit: Int) {
    let tombstones = records.values.filter { $0.value == nil }.sorted { $0.revision > $1.revision }
    for tombstone in tombstones.dropFirst(limit) {
      records[tombstone.address] = nil
      horizon = max(horizon, tombstone.revision)
    }
  }
}
