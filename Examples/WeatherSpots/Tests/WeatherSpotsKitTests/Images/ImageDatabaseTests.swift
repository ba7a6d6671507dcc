import Foundation
import Larder
import LarderBlobs
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct ImageDatabaseTests {
  private let workspace = Workspace()
  private let network = ScriptedImages()

  /// A directory that does not exist yet.
  private var directory: URL { workspace.directory.appending(path: "images") }

  private func database() async throws -> ImageDatabase {
    let images = ImageDatabase()
    try await images.setUp(directory: directory, transport: network)
    return images
  }

  @Test func theOrderIsMemoryThenDiskThenADownload() async throws {
    let images = try await database()
    #expect(try await images.image(from: picture("/a")).origin == .network)
    #expect(try await images.image(from: picture("/a")).origin == .memory)
    await images.removeFromMemory()
    #expect(try await images.image(from: picture("/a")).origin == .disk)
    try await images.close()
    // It opens itself again, where it was.
    #expect(try await images.image(from: picture("/a")).origin == .disk)
    try await images.close()
    let next = try await database()
    #expect(try await next.image(from: picture("/a")).origin == .disk)
    #expect(network.paths == ["/a"])
    try await next.close()
  }

  @Test func clearEmptiesMemoryAndDisk() async throws {
    let images = try await database()
    for path in ["/a", "/b"] { _ = try await images.image(from: picture(path)) }
    #expect(try await images.contents().map(\.key) == ["http://test/a", "http://test/b"])
    try await images.clear()
    #expect(try await images.usage() == .init())
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).allSatisfy { $0.hasPrefix("blob-index") })
    #expect(try await images.image(from: picture("/a")).origin == .network)
    try await images.close()
  }

  @Test func itIsSetUpOnceAndTheSameAgainIsNothing() async throws {
    let images = try await database()
    try await images.setUp(directory: directory, transport: network)
    let error = await #expect(throws: RepositoryError.self) { try await images.setUp(directory: directory.appending(path: "other")) }
    #expect(error?.code == .alreadyOpen)
    try await images.close()
  }

  @Test func manyWhoComeFirstOpenItOnce() async throws {
    let images = ImageDatabase()
    let (directory, network) = (directory, network)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<50 {
        group.addTask {
          try await images.setUp(directory: directory, transport: network)
          let image = try await images.image(from: picture("/\(number % 5)"))
          #expect(image.storageError == nil)
        }
      }
      try await group.waitForAll()
    }
    #expect(network.paths.count == 5)
    try await images.close()
  }

  @Test func whereNothingCanBeKeptImagesStillCome() async throws {
    let first = try await database()
    let second = ImageDatabase()
    let error = await #expect(throws: RepositoryError.self) { try await second.setUp(directory: directory, transport: network) }
    #expect(error?.code == .alreadyOpen)
    let image = try await second.image(from: picture("/a"))
    #expect(image.origin == .network && image.storageError?.code == .alreadyOpen)
    try await first.close()
    // Once the directory is free, it is used.
    #expect(try await second.image(from: picture("/a")).storageError == nil)
    try await second.close()
  }

  @Test func theDatabaseIsAGlobalActor() async {
    @ImageDatabase func isolated() -> Bool {
      ImageDatabase.shared.assertIsolated()
      return true
    }
    #expect(await isolated())
  }
}
