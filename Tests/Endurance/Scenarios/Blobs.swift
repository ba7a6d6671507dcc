import Foundation
import LarderBlobs

/// Blobs: read, written, replaced and removed.
enum Blobs {
  private static func store(_ place: Place) async throws -> BlobStore {
    try await BlobStore(
      directory: place.directory.appendingPathComponent("blobs"), limits: .init(memoryCount: 5, memoryBytes: 100_000, diskCount: 20))
  }

  static let scenarios = [
    Scenario("one blob") { place in
      let blobs = try await store(place)
      try await blobs.save(Data(repeating: 7, count: 1_000), for: "a")
      return Subject { _ in
        try expect(try await blobs.blob(for: "a")?.data.count == 1_000, "the blob")
      } end: {
        try await blobs.close()
      }
    },
    Scenario("one blob from disk") { place in
      let blobs = try await store(place)
      try await blobs.save(Data(repeating: 7, count: 1_000), for: "a")
      return Subject { _ in
        blobs.removeFromMemory()
        try expect(try await blobs.blob(for: "a")?.origin == .disk, "the blob from disk")
      } end: {
        try await blobs.close()
      }
    },
    Scenario("one blob, replaced", weight: 5) { place in
      let blobs = try await store(place)
      return Subject {
        try await blobs.save(Data(repeating: UInt8($0 % 256), count: 1_000), for: "a")
      } end: {
        try await blobs.close()
      }
    },
    // The journal of the index is folded from time to time.
    Scenario("new blobs, evicted", weight: 5, bytes: 2 << 20) { place in
      let blobs = try await store(place)
      return Subject { number in
        try await blobs.save(Data(repeating: 7, count: 100), for: "\(number)")
        if number % 3 == 0 { try await blobs.remove("\(number)") }
      } end: {
        try expect(await blobs.usage.diskCount <= 20, "at most 20 blobs")
        try await blobs.close()
      }
    },
    Scenario("blobs, given up") { place in
      let blobs = try await store(place)
      return Subject { number in
        let writer = try await blobs.writer(for: "a")
        try await writer.write(Data([1]))
        if number % 2 == 0 { await writer.abort() }
      } end: {
        try await blobs.close()
      }
    },
  ]
}
