import Foundation
import LarderTesting
import Synchronization

@testable import Larder

/// A repository whose disk can be kept busy, so that a test decides which writes share a commit.
struct BusyDisk<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  let backend: FaultInjectingBackend
  let items: LocalRepository<Item>

  init(
    _ type: Item.Type = Item.self, schema: RepositorySchema<Item> = .init(), options: StoreOptions = StoreOptions(checkpoint: .manual)
  ) async throws {
    backend = FaultInjectingBackend(InMemoryBackend())
    items = try await LocalRepository<Item>(backend: backend, schema: schema, options: options)
  }

  /// Starts a write, and returns when its commit is stopped at the disk.
  func occupy(_ write: @escaping @Sendable (LocalRepository<Item>) async throws -> Void) async -> Task<Void, any Error> {
    backend.hold(.commit)
    let items = items
    let task = Task { try await write(items) }
    await backend.waitUntilHeld(.commit)
    return task
  }

  /// Starts a write, and returns when it waits for the commit after the one at the disk.
  func enqueue<Output: Sendable>(
    _ write: @escaping @Sendable (LocalRepository<Item>) async throws -> Output
  ) async throws -> Task<Output, any Error> {
    let before = items.queue.waitingWriteCount
    let items = items
    let task = Task { try await write(items) }
    try await until { items.queue.waitingWriteCount == before + 1 }
    return task
  }
}
