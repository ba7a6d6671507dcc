internal import Foundation
internal import Larder
internal import LarderSync

/// Contents of a record of the sync simulation, in a form that all versions of the simulated app share.
struct SimulatedFields: Sendable, Equatable {
  var name = ""
  var count = 0
  var tags: [String] = []
  /// Member that only the record type of the newest app has.
  var extra: SimulatedExtra?
}

/// Value that older apps do not have in their type, and must still preserve byte for byte.
///
/// JSON allows several spellings of the number, the array and the characters in the value. An app that decodes and encodes the value may
/// change its bytes.
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

/// Record type of the oldest version of the simulated app.
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
  // The app with schema version 2 calls the counter `count`, and newer apps call it `total`, so edits of both apps can merge only after the
  // migration.
  static var policy: MergePolicy<Self> { .fields(counters: [\.count], sets: [\.tags]) }
}

/// Record type of the newer version of the simulated app, which has renamed two members.
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
  /// Migrates a record from schema version 2 to 3, by renaming two members.
  static func bringUp(_ object: inout JSONObject) {
    // The migration renames members of the JSON object, so that members which the record type does not have are preserved.
    object["title"] = object["name"]
    object["total"] = object["count"]
    object["name"] = nil
    object["count"] = nil
  }
}

/// Record type of the newest version of the simulated app, which adds the member `extra` without a new schema version.
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

/// Version of the simulated app that a device runs, from the oldest to the newest.
enum SimulatedApp: Int, Sendable, CaseIterable {
  case v2, v3, withExtra

  var version: Int { self == .v2 ? 2 : 3 }

  /// Opens the records of a store with the record type of this version of the app.
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
  /// - Throws: `.newerSchema` if the store has a record with this id that a newer app has written.
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
  // Only records that fail with `.newerSchema` are listed, because a damaged record must not pass for a record of a newer app.
  var newer: [String] { repository.snapshot.undecodable.filter { $0.error.code == .newerSchema }.map(\.key.text) }

  func fields(of id: String) -> SimulatedFields? {
    // A record of a newer app does not decode, so `fields(of:)` returns `nil` for it.
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
    // The read and the save are one transaction. In separate transactions, another edit could be committed between the read and the save,
    // and the save would overwrite that edit.
    try await repository.transaction { [repository] transaction in
      var item = try transaction.find(by: id, in: repository) ?? Item(id: id, scope: scope)
      item.fields.count += 1
      try transaction.save(item, in: repository)
    }
  }
  func delete(_ id: String) async throws { try await repository.delete(id) }
  func finishMigration() async throws { try await repository.finishMigration() }
}
