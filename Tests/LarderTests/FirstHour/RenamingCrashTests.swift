import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// A crash at any operation of a move leaves the records under the old name or under the new one.
@Suite("Crashes while a collection gets another name", .timeLimit(.minutes(15))) struct RenamingCrashTests {
  private static let schema = RepositorySchema<Spot>("spots", renamedFrom: "records")

  @Test func aCrashLeavesTheOldNameOrTheNewOne() async throws {
    let batches = try await Self.batches()
    #expect(batches.count == 2)
    let file = URL(fileURLWithPath: "/store/spots.json")
    let seed = try #require(Seeds.list(1, for: "crashes of a move").first)
    let result = try CrashExplorer(seed: seed, imagesPerPoint: 20).explore { (files, acknowledge: (Int) -> Void) in
      let backend = JSONFileBackend(file: file, fileSystem: files)
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      for (number, batch) in batches.enumerated() {
        try backend.commit(batch)
        acknowledge(number + 1)
        if number == 0 { try backend.checkpoint() }
      }
      try backend.checkpoint()
      try backend.close()
    } check: { image, acknowledged in
      try MovedState(JSONFileBackend(file: file, fileSystem: image.fileSystem)).check(acknowledged.last ?? 0)
    }
    #expect(result.points > 20 && result.images > 40)
  }

  /// The commits of an app that saves under the default name, and of its next version, which moves what is there.
  private static func batches() async throws -> [WriteBatch] {
    let memory = FaultInjectingBackend(InMemoryBackend())
    let first = try await LocalRepository<Spot>(backend: memory)
    try await first.save(contentsOf: (0..<10).map { Spot("spot \($0)") })
    try await first.close()
    try await LocalRepository(backend: memory, schema: schema).close()
    return memory.batches
  }
}
