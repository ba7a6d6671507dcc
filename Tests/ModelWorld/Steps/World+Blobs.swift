internal import Foundation
internal import Larder
internal import LarderBlobs
internal import TestSupport

/// The blobs, which are durable when a write returns.
extension World {
  private var anyBlobKey: String { "blob \(random.int(0..<8))" }

  var anyBlob: Data { Data((0..<random.int(0..<300)).map { UInt8(truncatingIfNeeded: $0) &+ UInt8(random.int(0..<256)) }) }

  func putBlob() async throws {
    let (key, blob) = (anyBlobKey, anyBlob)
    try await blobs.save(blob, for: key)
    blobModel[key] = blob
  }

  func getBlob() async throws {
    let key = anyBlobKey
    if random.chance(10) { blobs.removeFromMemory() }
    let found = try await blobs.blob(for: key)?.data
    try expect(found == blobModel[key], "the blob '\(key)' has \(found?.count ?? -1) bytes, not \(blobModel[key]?.count ?? -1)")
  }

  func readBlobInfo() throws {
    let key = anyBlobKey
    let size = try blobs.info(for: key)?.size
    try expect(size == blobModel[key]?.count, "the info of '\(key)' says \(size ?? -1) bytes, not \(blobModel[key]?.count ?? -1)")
  }

  func removeBlob() async throws {
    let key = anyBlobKey
    let wasThere = try await blobs.remove(key)
    try expect(wasThere == (blobModel.removeValue(forKey: key) != nil), "remove of '\(key)' returned \(wasThere)")
  }

  func reopenBlobs() async throws {
    try await blobs.close()
    blobs = try await site.openBlobs()
    try expect(blobs.openReport.isClean, "reopened blobs report \(blobs.openReport)")
    try await compareBlobs("reopened,")
  }

  func compareBlobs(_ moment: String) async throws {
    let keys = blobs.persistedKeys.sorted()
    try expect(keys == blobModel.keys.sorted(), "\(moment) the blobs are \(keys), not \(blobModel.keys.sorted())")
    for (key, blob) in blobModel {
      let found = try await blobs.blob(for: key)?.data
      try expect(found == blob, "\(moment) the blob '\(key)' has \(found?.count ?? -1) bytes, not \(blob.count)")
    }
  }

  /// Damages one file of a copy: each blob is there as it was, or is missing.
  func damageBlobs() async throws {
    var copy = site
    copy.files = site.files.copy()
    let paths = copy.files.paths.filter { $0.hasPrefix(Site.blobs) }
    guard let path = paths.randomElement(using: &random), var bytes = copy.files.contents(of: path), !bytes.isEmpty else { return }
    let offset = random.int(0..<bytes.count)
    if random.chance(70) { bytes[offset] ^= 1 << UInt8(random.int(0..<8)) } else { bytes = bytes.prefix(offset) }
    try copy.files.place(bytes, at: path)
    let opened: BlobStore
    do {
      opened = try await copy.openBlobs()
    } catch {
      return try expect(error.code == .newerSchema, "blobs with damage at byte \(offset) of \(path) do not open: \(error)")
    }
    for key in blobModel.keys.sorted() {
      let found = try await opened.blob(for: key)?.data
      try expect(found == nil || found == blobModel[key], "'\(key)' is other bytes after damage at byte \(offset) of \(path)")
    }
    try await opened.close()
  }
}
