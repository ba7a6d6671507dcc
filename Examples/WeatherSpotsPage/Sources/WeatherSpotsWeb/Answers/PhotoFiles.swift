package import Foundation
import Larder
import LarderBlobs
import WeatherSpotsKit

/// Photos in the image directory beside a store, opened for each read and closed after it.
///
/// Only one process can have the directory open. A server that kept it open would lock out the commands.
package actor PhotoFiles {
  private let directory: URL
  private let database = ImageDatabase.shared
  /// Completion of the previous read.
  private var last: Task<Void, Never>?

  /// Creates access to the photos of a directory without opening it.
  package init(directory: URL) { self.directory = directory }

  /// Returns the bytes of a photo, or `nil` if it is not stored.
  ///
  /// - Throws: `.locked` while another process has the directory open.
  func photo(_ url: URL) async throws -> Data? {
    try await use { database in
      // `image(from:)` fetches a photo that is not stored, and a request to this server must not cause one to another.
      guard let key = ImageFetcher.key(of: url), try await database.contents().contains(where: { $0.key == key }) else { return nil }
      return try await database.image(from: url).data
    }
  }

  /// Returns the keys of the stored photos, or an empty set if the directory is missing or cannot be read.
  func keptKeys() async -> Set<String> {
    // The list of photos is answered also while another process has the directory open, without images.
    do { return try await use { Set(try await $0.contents().map(\.key)) } ?? [] } catch { return [] }
  }

  /// Opens the directory, runs `body` and closes the directory again.
  ///
  /// Calls run one after the other, since a directory that is being closed cannot be opened. Returns `nil` if there is no directory.
  private func use<Value: Sendable>(_ body: @escaping @Sendable (ImageDatabase) async throws -> Value?) async throws -> Value? {
    // Opening would create the directory, and a read must not.
    guard FileManager.default.fileExists(atPath: directory.path) else { return nil }
    let (before, directory, database) = (last, directory, database)
    let task = Task {
      // The actor is reentrant at `await`. Without this wait one call would close the directory while another one reads.
      await before?.value
      try await database.setUp(directory: directory, limits: .init(diskBytes: 200_000_000))
      // The error is thrown after `close()`, because a directory left open would stay locked for every command.
      let result: Result<Value?, any Error>
      do { result = .success(try await body(database)) } catch { result = .failure(error) }
      try await database.close()
      return try result.get()
    }
    // `last` ends without an error, so the failure of one call does not fail the next one.
    last = Task { _ = await task.result }
    return try await task.value
  }
}
