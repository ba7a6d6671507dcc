internal import Foundation
internal import Larder
internal import LarderBlobs
internal import LarderTesting
internal import TestSupport

/// Crashes: power cuts of simulated files, and kills, which leave copies of real ones.
extension World {
  func crash() async throws {
    try await crash(perhaps: nil)
  }

  /// Takes the machine down amid writes: the last one is there or is not.
  func crashAmidWrites() async throws {
    let files = site.files
    files.crash(beforeOperation: files.operationCount + random.int(1..<8))
    if site.backing != .json || random.chance(20) { return try await crashAmidBlob() }
    var perhaps: Model.Commit?
    for _ in 0..<20 where perhaps == nil {
      var place = Place.random(random.int(Place.ids), using: &random)
      place.slug = "c\(model.revision)"
      let durability: Durability = random.chance(60) ? .durable : .buffered
      let commit = Model.Commit(places: [(place.id, place)])
      let result = try await attempt { try await places.save(place, ifRevision: nil, durability: durability) }
      if result.code == nil {
        model.commit(commit, isDurable: durability == .durable || mistake == .calledDurable)
      } else {
        try expect(files.isDown, "a save ended with \(Self.text(result.code)) while the machine was up")
        perhaps = commit
      }
    }
    files.crash(beforeOperation: nil)
    try await crash(perhaps: perhaps)
  }

  private func crashAmidBlob() async throws {
    let (key, blob) = ("blob \(random.int(0..<8))", anyBlob)
    let result = try await attempt { try await blobs.save(blob, for: key) }
    try expect(result.code == nil || site.files.isDown, "a blob ended with \(Self.text(result.code)) while the machine was up")
    site.files.crash(beforeOperation: nil)
    if result.code == nil { blobModel[key] = blob }
    try await crash(perhaps: nil, blob: result.code == nil ? nil : (key, blob))
  }

  /// Crashes, opens everything that is left, and takes it over if it keeps the promises.
  private func crash(perhaps: Model.Commit?, blob: (key: String, data: Data)? = nil) async throws {
    let isKill = random.chance(30)
    let wasDown = site.files.isDown
    let (old, oldSite) = (opened, site)
    if site.backing == .memory {
      try await closeStore()
    } else if site.directory != nil, let copy = try site.copy() {
      site.directory = copy.directory
      try await old.store.close()
    }
    withExtendedLifetime(oldSite) {}
    let summary = try await restart(site.files, isKill ? .processKill : .powerLoss)
    try await openStoreAfterCrash(summary, keepsAll: site.backing != .json || (isKill && !wasDown), perhaps)
    try await openBlobsAfterCrash(summary, blob)
  }

  /// Replaces the files by what a crash leaves of them, and opens the cache; returns what the crash has taken.
  @discardableResult
  func restart(_ files: SimulatedFileSystem, _ kind: CrashKind = .powerLoss) async throws -> String {
    let images = files.crashImages(kind, limit: 6, seed: random.next())
    let image = images[random.int(0..<images.count)]
    site.files = image.fileSystem
    cache = try await site.openCache(clock, source)
    try await adoptCacheAfterCrash()
    // What a kill has left unsynced may still be lost.
    try await cache.storage.flush()
    cacheModel.past = cacheModel.entries.mapValues { [$0] }
    return image.summary
  }

  private func openStoreAfterCrash(_ summary: String, keepsAll: Bool, _ perhaps: Model.Commit?) async throws {
    let oldest = keepsAll ? model.revision : model.durable
    opened = try await site.open(version: model.version, options)
    let commit = opened.store.openReport.commit.number
    let newest = model.revision + (perhaps == nil ? 0 : 1)
    try expect(oldest...newest ~= commit, "after a crash (\(summary)) the store is at commit \(commit), not \(oldest) to \(newest)")
    guard let state = model.state(at: commit, perhaps: perhaps) else { throw Difference("the log does not reach commit \(commit)") }
    try Self.compare(try opened.contents, state, "after a crash (\(summary))")
    model.begin(at: commit, perhaps: perhaps)
    if let marked = bookmark, marked.revision > commit { bookmark = nil }
    try await opened.store.flush()
    watcher = Watcher(opened, told: model.places)
  }

  func openBlobsAfterCrash(_ summary: String, _ blob: (key: String, data: Data)? = nil) async throws {
    blobs = try await site.openBlobs()
    if let blob, try await blobs.blob(for: blob.key)?.data == blob.data { blobModel[blob.key] = blob.data }
    try await compareBlobs("after a crash (\(summary))")
  }
}
