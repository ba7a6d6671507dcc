import Foundation
import Larder

enum QuerySmoke {
  static func run(_ directory: URL) async throws {
    let jars = try await LocalRepository<Jar>(inMemory: Jar.schema)
    try await jars.save(contentsOf: Jar.all)
    func ids(_ query: Query<Jar>) async throws -> [Int] { try await jars.fetch(query).map(\.id) }
    try await expect(ids(Query().filter { $0.shelf == 1 }.sorted(by: \.label)) == [2, 1])
    try await expect(ids(Query().sorted(by: \.weight, .reverse).offset(1).limit(1)) == [3])
    try await expect(ids(Query().where(\.shelf, .equal, 2)) == [3], ids(Query().where(\.shelf, .notEqual, 1)) == [3])
    try await expect(ids(Query().where(\.shelf, .less, 2).where(\.label, .lessOrEqual, "fig jam")) == [2])
    try await expect(ids(Query().where(\.weight, .greater, 1.0)) == [1], ids(Query().where(\.weight, .greaterOrEqual, 1.0)).count == 2)
    try await expect(ids(Query().where(\.id, in: [3, 7])) == [3], ids(Query().strict()).count == 3)
    try await expect(ids(Query().within(BoundingBox(south: 40, west: 0, north: 50, east: 2.5))) == [1])
    let near = try await jars.matches(Query().near(latitude: 48, longitude: 2, within: .kilometers(500)))
    try expect(near.map(\.item.id) == [1, 2] && near[0].distance == .meters(0))
    let found = try await jars.matches(Query().matching("jam"))
    try expect(found.count == 2 && (found[0].score ?? 0) > 0 && found[0].extract != nil)
    let query = Query<Jar>().where(#Predicate { $0.shelf == 1 }).sorted(by: \.label)
    let page = try await jars.page(query, limit: 1)
    try expect(page.items == [.fig] && page.matches.count == 1)
    guard let next = page.next else { throw SmokeFailure(description: "expected a second page") }
    try expectCodable(next)
    try await expect(jars.page(query, after: next, limit: 1).items == [.plum])

    let plan = jars.explain(query)
    try expect(plan.access == .index("shelf, label") || plan.index != nil)
    try expect(plan.order == .index && plan.refusal == nil && plan.estimatedRows >= 0 && plan.examinedRows ?? 0 >= 0)
    try expect(plan.conditions.count == 1 && plan.residual.isEmpty && !plan.description.isEmpty)
    try expect(jars.explain(Query().filter { _ in true }).access == .scan && jars.explain(Query().limit(0)).access == .nothing)
    try expect(jars.explain(Query().sorted(by: \.weight)).order == .sorted && jars.explain(Query()).order == .id)
    let bare = try await LocalRepository<Jar>(inMemory: RepositorySchema())
    try expect(bare.explain(Query().matching("jam")).access == .refused)
    await bare.removeAutomaticIndexes()
    try await bare.close()
    try await jars.close()
    try await indexes()
  }

  /// Opens a collection with every form of an index.
  private static func indexes() async throws {
    let index = RepositoryIndex<Jar>.ordered(.descending(\.shelf), .ascending(\.label))
    let forms: [RepositoryIndex<Jar>] = [
      index, .ordered(\.shelf), .ordered(\.shelf, .descending(\.label)), .ordered(.descending(\.shelf), .ascending(\.label), \.id),
      .ordered(.descending(\.shelf), \.label, .descending(\.id)), .ordered(\.shelf, .descending(\.label), .ascending(\.id)),
      .ordered(\.shelf, .descending(\.label), \.id), .ordered(\.shelf, \.label, .descending(\.id)),
      .ordered(.descending(\.shelf), \.label, \.id),
      .geo(\.latitude, \.longitude), .geo(\.weight, \.weight), .unique(\.label, \.shelf), .fullText(\.label),
    ]
    try expect(!index.description.isEmpty && !IndexColumn<Jar>.ascending(\.shelf).description.isEmpty)
    for form in forms {
      let schema = RepositorySchema<Jar>("jars", version: 2, indexes: [form])
      try schema.validate()
      try expect(schema.name == "jars" && schema.version == 2 && schema.indexes.count == 1 && schema.migrations.isEmpty)
      let jars = try await LocalRepository<Jar>(inMemory: schema, options: .init(indexing: .eager))
      try await jars.save(contentsOf: Jar.all)
      try await expect(jars.fetch(Query().sorted(by: \.shelf, .reverse).limit(1)) == [.lime])
      try await jars.close()
    }
  }
}
