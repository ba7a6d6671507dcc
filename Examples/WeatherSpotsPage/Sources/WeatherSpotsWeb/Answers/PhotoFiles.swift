package import Foundation
import Larder
import LarderBlobs
import WeatherSpotsKit

/// The photos that are kept beside a store, open only while somebody looks at one, since one process has them at a time.
package actor PhotoFiles {
  private let directory: URL
  private let database = ImageDatabase.shared
  /// The end of the question before.
  private var last: Task<Void, Never>?

  /// Makes the photos of a directory.
  package init(directory: URL) { self.directory = directory }

  /// Returns the bytes of a photo; `nil` where it is not kept.
  ///
  /// - Throws: `.locked` while another process has the photos.
  func photo(_ url: URL) async throws -> Data? {
    try await use { database in
      guard let key = ImageFetcher.key(of: url), try await database.contents().contains(where: { $0.key == key }) else { return nil }
      return try await database.image(from: url).data
    }
  }

  /// Returns the keys of the photos that are kept; none where there is no directory, or another process has it.
  func keptKeys() async -> Set<String> {
    do { return try await use { Set(try await $0.contents().map(\.key)) } ?? [] } catch { return [] }
  }

  /// Opens the photos, asks for something and closes them; one question at a time, since they cannot be opened while they are being closed.
  private func use<Value: Sendable>(_ body: @escaping @Sendable (ImageDatabase) async throws -> Value?) async throws -> Value? {
    guard FileManager.default.fileExists(atPath: directory.path) else { return nil }
    let (before, directory, database) = (last, directory, database)
    let task = Task {
      await before?.value
      try await database.setUp(directory: directory, limits: .init(diskBytes: 200_000_000))
      let result: Result<Value?, any Error>
      do { result = .success(try await body(database)) } catch { result = .failure(error) }
      try await database.close()
      return try result.get()
    }
    last = Task { _ = await task.result }
    return try await task.value
  }
}
