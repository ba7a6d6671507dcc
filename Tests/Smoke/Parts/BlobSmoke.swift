import Foundation
import Larder
import LarderBlobs

enum BlobSmoke {
  static func run(_ directory: URL) async throws {
    let limits = BlobStore.Limits(memoryCount: 5, memoryBytes: 1_000, diskCount: 6, diskBytes: 100_000)
    try expect(limits.memoryCount + limits.memoryBytes + limits.diskCount + limits.diskBytes == 101_011)
    let blobs = try await BlobStore(directory: directory.appendingPathComponent("blobs"), limits: limits) { _ in }
    try expect(blobs.limits.diskCount == 6)
    let report = blobs.openReport
    try expect(report.isClean && report.missing.isEmpty && report.orphans.isEmpty && report.setAside.isEmpty && report.unfinished.isEmpty)
    try expect(report.damage == nil && report.index.isNew)
    try await blobs.save(Data([1, 2, 3]), for: "a")
    try await blobs.save(
      AsyncStream { continuation in
        continuation.yield(Data([4]))
        continuation.yield(Data([5]))
        continuation.finish()
      }, for: "b")
    let writer = try await blobs.writer(for: "c")
    try await writer.write(Data([6]))
    try await writer.finish()
    _ = writer.unownedExecutor
    let given = try await blobs.writer(for: "d")
    await given.abort()
    let blob = try await blobs.blob(for: "a")
    try expect(blob?.data == Data([1, 2, 3]) && blob?.storedAt != nil && blob.map { Blob.Origin(rawValue: $0.origin.rawValue) } == .memory)
    blobs.removeFromMemory()
    try await expect(blobs.blob(for: "b")?.origin == .disk)
    try expect(try blobs.info(for: "c")?.size == 1 && blobs.persistedKeys.sorted() == ["a", "b", "c"])
    let info = blobs.contents
    try expect(info.map(\.key).sorted() == ["a", "b", "c"] && info.allSatisfy { $0.storedAt.timeIntervalSince1970 > 0 })
    let usage = await blobs.usage
    try expect(usage.diskCount == 3 && usage.diskBytes > 0 && usage.memoryCount >= 1 && usage.memoryBytes >= 1)
    try expect(BlobStore.Usage(memoryCount: 1, memoryBytes: 2, diskCount: 3, diskBytes: 4).diskBytes == 4)
    await blobs.suspend()
    try await blobs.resume()
    try await expect(blobs.remove("a"))
    _ = blobs.unownedExecutor
    try await blobs.clear()
    try await blobs.close()
    // The place of an app's caches, which is not that of the user who runs this.
    setenv("XDG_CACHE_HOME", directory.path, 1)
    let standard = try await BlobStore()
    try await standard.close()
    try expect(FileManager.default.fileExists(atPath: DataDirectory.caches().appending(path: "blobs/blob-index.json").path))
  }
}
