internal import Foundation
internal import Larder
internal import LarderSync

/// The records of a device, whatever version of the app it runs.
protocol SimulatedRecords: Sendable {
  /// The ids of the records that the app can read.
  var ids: [String] { get }
  /// The ids of the records that a newer app has written.
  var newer: [String] { get }
  /// Returns what a record says; `nil` where there is none that the app can read.
  func fields(of id: String) -> SimulatedFields?
  /// - Throws: `.newerSchema` over a record that a newer app has written.
  func insert(_ id: String, in scope: String, _ fields: SimulatedFields) async throws
  func update(_ id: String, _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws
  /// Changes several records at once.
  func transact(_ ids: [String], _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws
  /// Adds one to a counter, and makes it where it is missing.
  func increment(_ id: String, in scope: String) async throws
  func delete(_ id: String) async throws
  /// Rewrites the older records that are left.
  func finishMigration() async throws
}

/// The records of a device as one version of the app has them.
struct TypedRecords<Item: SimulatedItem>: SimulatedRecords {
  private let repository: LocalRepository<Item>

  init(_ store: Store, _ clock: any WallClock) async throws {
    repository = try await store.repository(Item.schema.synced(in: { $0.scope }, merge: Item.policy, clock: clock))
  }

  var ids: [String] { repository.snapshot.loadAll().map(\.id) }
  var newer: [String] { repository.snapshot.undecodable.filter { $0.error.code == .newerSchema }.map(\.key.text) }

  func fields(of id: String) -> SimulatedFields? {
    do throws(RepositoryError) { return try repository.snapshot.find(by: id)?.fields } catch { return nil }
  }
  func insert(_ id: String, in scope: String, _ fields: SimulatedFields) async throws {
    var item = Item(id: id, scope: scope)
    item.fields = fields
    try await repository.save(item)
  }
  func update(_ id: String, _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws {
    try await repository.update(id) { body(&$0.fields) }
  }
  func transact(_ ids: [String], _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws {
    try await repository.transaction { [repository] transaction in
      for id in ids { try transaction.update(id, in: repository) { body(&$0.fields) } }
    }
  }
  func increment(_ id: String, in scope: String) async throws {
    try await repository.transaction { [repository] transaction in
      var item = try transaction.find(by: id, in: repository) ?? Item(id: id, scope: scope)
      item.fields.count += 1
      try transaction.save(item, in: repository)
    }
  }
  func delete(_ id: String) async throws { try await repository.delete(id) }
  func finishMigration() async throws { try await repository.finishMigration() }
}
