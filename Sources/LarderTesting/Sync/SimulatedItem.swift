internal import Foundation
internal import Larder
internal import LarderSync

/// Contents of a record of the simulation, in a form that all versions of the app share.
struct SimulatedFields: Sendable, Equatable {
  var name = ""
  var count = 0
  var tags: [String] = []
  /// Member that only the newest app has.
  var extra: SimulatedExtra?
}

/// Value that older apps do not have in their type, and must still preserve byte for byte.
///
/// Its number, array and characters have several spellings in JSON, so that decoding and encoding it would show.
struct SimulatedExtra: Codable, Sendable, Equatable {
  var zone: String
  var ratio: Double
  var parts: [String]
}

/// Record type of one version of the simulated app.
protocol SimulatedItem: Codable, Identifiable, Sendable where ID == String {
  init(id: String, scope: String)
  var scope: String { get }
  var fields: SimulatedFields { get set }
  static var schema: RepositorySchema<Self> { get }
  static var policy: MergePolicy<Self> { get }
}

/// Record type of the oldest app.
struct SimulatedItemV2: SimulatedItem {
  var id: String
  var scope: String
  var name = ""
  var count = 0
  var tags: [String] = []

  init(id: String, scope: String) { (self.id, self.scope) = (id, scope) }
  var fields: SimulatedFields {
    get { SimulatedFields(name: name, count: count, tags: tags) }
    set { (name, count, tags) = (newValue.name, newValue.count, newValue.tags) }
  }
  static var schema: RepositorySchema<Self> { RepositorySchema("items", version: 2, migrations: [.init(from: 1) { _ in }]) }
  // The two apps merge the same member under different names, so their edits must meet in the migrated form.
  static var policy: MergePolicy<Self> { .fields(counters: [\.count], sets: [\.tags]) }
}

/// Record type of the newer app, which has renamed two members.
struct SimulatedItemV3: SimulatedItem {
  var id: String
  var scope: String
  var title = ""
  var total = 0
  var tags: [String] = []

  init(id: String, scope: String) { (self.id, self.scope) = (id, scope) }
  var fields: SimulatedFields {
    get { SimulatedFields(name: title, count: total, tags: tags) }
    set { (title, total, tags) = (newValue.name, newValue.count, newValue.tags) }
  }
  static var schema: RepositorySchema<Self> { RepositorySchema("items", version: 3, migrations: Self.migrations) }
  static var policy: MergePolicy<Self> { .fields(counters: [\.total], sets: [\.tags]) }

  static let migrations: [Migration] = [.init(from: 1) { _ in }, .init(from: 2) { bringUp(&$0) }]
  /// Renames the members of a record from schema version 2 to 3.
  static func bringUp(_ object: inout JSONObject) {
    // By members of the object, so that one which the type does not have is preserved.
    object["title"] = object["name"]
    object["total"] = object["count"]
    object["name"] = nil
    object["count"] = nil
  }
}

/// Record type of the newest app, which has the same schema version and one more member.
struct SimulatedItemWithExtra: SimulatedItem {
  var id: String
  var scope: String
  var title = ""
  var total = 0
  var tags: [String] = []
  var extra: SimulatedExtra?

  init(id: String, scope: String) { (self.id, self.scope) = (id, scope) }
  var fields: SimulatedFields {
    get { SimulatedFields(name: title, count: total, tags: tags, extra: extra) }
    set { (title, total, tags, extra) = (newValue.name, newValue.count, newValue.tags, newValue.extra) }
  }
  static var schema: RepositorySchema<Self> { RepositorySchema("items", version: 3, migrations: SimulatedItemV3.migrations) }
  static var policy: MergePolicy<Self> { .fields(counters: [\.total], sets: [\.tags]) }
}

/// Version of the app that a device runs, from the oldest to the newest.
enum SimulatedApp: Int, Sendable, CaseIterable {
  case v2, v3, withExtra

  var version: Int { self == .v2 ? 2 : 3 }

  /// Opens the records of a store with the record type of this app.
  func open(_ store: Store, clock: any WallClock) async throws -> any SimulatedRecords {
    switch self {
    case .v2: try await TypedRecords<SimulatedItemV2>(store, clock)
    case .v3: try await TypedRecords<SimulatedItemV3>(store, clock)
    case .withExtra: try await TypedRecords<SimulatedItemWithExtra>(store, clock)
    }
  }
}

/// Records of a device, for code that is the same for all versions of the app.
protocol SimulatedRecords: Sendable {
  /// Ids of the records that the app can read.
  var ids: [String] { get }
  /// Ids of the records that a newer app has written, and that this app cannot read.
  var newer: [String] { get }
  /// Returns the contents of a record, or `nil` if there is none that the app can read.
  func fields(of id: String) -> SimulatedFields?
  /// Inserts a record.
  ///
  /// - Throws: `.newerSchema` over a record that a newer app has written.
  func insert(_ id: String, in scope: String, _ fields: SimulatedFields) async throws
  func update(_ id: String, _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws
  /// Changes several records in one transaction.
  func transact(_ ids: [String], _ body: @escaping @Sendable (inout SimulatedFields) -> Void) async throws
  /// Adds one to a counter, and creates the counter if it is missing.
  func increment(_ id: String, in scope: String) async throws
  func delete(_ id: String) async throws
  /// Rewrites the remaining records of older schema versions.
  func finishMigration() async throws
}

/// Records of a device with the record type of one version of the app.
struct TypedRecords<Item: SimulatedItem>: SimulatedRecords {
  private let repository: LocalRepository<Item>

  init(_ store: Store, _ clock: any WallClock) async throws {
    repository = try await store.repository(Item.schema.synced(in: { $0.scope }, merge: Item.policy, clock: clock))
  }

  var ids: [String] { repository.snapshot.loadAll().map(\.id) }
  // Not every undecodable record: a damaged one must not pass for one of a newer app.
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
    // In a transaction, because an edit may come between a read and a save, and the increment would be lost.
    try await repository.transaction { [repository] transaction in
      var item = try transaction.find(by: id, in: repository) ?? Item(id: id, scope: scope)
      item.fields.count += 1
      try transaction.save(item, in: repository)
    }
  }
  func delete(_ id: String) async throws { try await repository.delete(id) }
  func finishMigration() async throws { try await repository.finishMigration() }
}
