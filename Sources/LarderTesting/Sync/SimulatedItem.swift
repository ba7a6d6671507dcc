internal import Foundation
internal import Larder
internal import LarderSync

/// The contents of a record of the simulation, whatever version of the app has written it.
struct SimulatedFields: Sendable, Equatable {
  var name = ""
  var count = 0
  var tags: [String] = []
  /// The member that only the newest app knows.
  var extra: SimulatedExtra?
}

/// A value with a number, an array and signs that JSON may spell in several ways: it must come through other apps byte for byte.
struct SimulatedExtra: Codable, Sendable, Equatable {
  var zone: String
  var ratio: Double
  var parts: [String]
}

/// A record of the simulation, as one version of the app has it.
protocol SimulatedItem: Codable, Identifiable, Sendable where ID == String {
  init(id: String, scope: String)
  var scope: String { get }
  var fields: SimulatedFields { get set }
  static var schema: RepositorySchema<Self> { get }
  static var policy: MergePolicy<Self> { get }
}

/// The record of the oldest app.
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
  static var policy: MergePolicy<Self> { .fields(counters: [\.count], sets: [\.tags]) }
}

/// The record of the newer app, which has other names for two members.
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
  static func bringUp(_ object: inout JSONObject) {
    object["title"] = object["name"]
    object["total"] = object["count"]
    object["name"] = nil
    object["count"] = nil
  }
}

/// The record of the newest app: of the same version, with a member that the other one does not know.
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

/// A version of the app that a device runs; later ones are newer.
enum SimulatedApp: Int, Sendable, CaseIterable {
  case v2, v3, withExtra

  var version: Int { self == .v2 ? 2 : 3 }

  /// Opens the records of a store as this app has them.
  func open(_ store: Store, clock: any WallClock) async throws -> any SimulatedRecords {
    switch self {
    case .v2: try await TypedRecords<SimulatedItemV2>(store, clock)
    case .v3: try await TypedRecords<SimulatedItemV3>(store, clock)
    case .withExtra: try await TypedRecords<SimulatedItemWithExtra>(store, clock)
    }
  }
}
