import Foundation
import Larder

nonisolated struct Beach: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var slug: String
  var country: String
  var rating: Int
  var latitude: Double
  var longitude: Double
  var notes: String
}

nonisolated enum Beaches {
  static let schema = RepositorySchema<Beach>(
    "beaches",
    indexes: [
      .ordered(\.country, \.rating),
      .unique(\.slug),
      .geo(\.latitude, \.longitude),
      .fullText(\.name, \.notes),
    ])
}

func openBeaches(url: URL) async throws {
  let beaches = try await LocalRepository<Beach>(jsonFile: url, schema: Beaches.schema)
  let best = try await beaches.fetch(
    Query().where(#Predicate { $0.country == "JP" && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(50))

  print(best.count)
}

func openEagerly(url: URL) async throws {
  let options = StoreOptions(indexing: .eager)
  let beaches = try await LocalRepository<Beach>(jsonFile: url, schema: Beaches.schema, options: options)

  print(beaches.openReport.recordCount)
  let withoutThem = StoreOptions(buildsAutomaticIndexes: false)
  print(withoutThem.buildsAutomaticIndexes)
}

func askingForBeaches(beaches: LocalRepository<Beach>, country: String) async throws {
  let query = Query<Beach>()
    .where(#Predicate { $0.country == country })  // several add up
    .where(#Predicate { ["jogashima", "arasaki"].contains($0.slug) || $0.rating > 3 })
    .filter { $0.notes.count < 1_000 }  // what a predicate cannot say; no index helps
    .sorted(by: \.rating, .reverse)
    .sorted(by: \.name)  // among equals; at last the id decides
    .limit(20)
  let found = try await beaches.fetch(query)
  let first = try await beaches.first(query)
  let count = try await beaches.count(query)

  print(found, first as Any, count)
}

func predicatesAlone(beaches: LocalRepository<Beach>) async throws {
  let good = try await beaches.count(where: #Predicate { $0.rating >= 4 })
  let anyone = try await beaches.first(where: #Predicate { $0.country == "JP" })
  let gone = try await beaches.delete(where: #Predicate { $0.rating < 2 })

  print(good, anyone as Any, gone)
}

nonisolated enum Kind: String, Codable, IndexableValue { case pier, beach }

nonisolated struct Landing: Codable, Identifiable, Sendable {
  let id: UUID
  var kind: Kind
  var isOpen: Bool
}

func enumerations(landings: LocalRepository<Landing>) async throws {
  let piers = Query<Landing>().where(\.kind, .equal, .pier).sorted(by: \.isOpen, .reverse)

  print(try await landings.fetch(piers))
}

func atOnce(beaches: LocalRepository<Beach>) throws {
  let snapshot = beaches.snapshot
  let shown = try snapshot.fetch(Query().sorted(by: \.rating, .reverse).limit(20))
  let ofJapan = try snapshot.count(Query().where(#Predicate { $0.country == "JP" }))

  print(shown, ofJapan)
}

func explaining(beaches: LocalRepository<Beach>, query: Query<Beach>) {
  let plan = beaches.explain(query)
  print(plan)
  if plan.access == .scan { print("declare an index for this one") }
}

func nearby(beaches: LocalRepository<Beach>) async throws {
  let around = Query<Beach>().near(latitude: 35.13, longitude: 139.61, within: .kilometers(25))
  for match in try await beaches.matches(around.where(#Predicate { $0.rating >= 4 })) {
    print(match.item.name, match.distance as Any)
  }
  let nearest = try await beaches.fetch(Query().near(latitude: 35.13, longitude: 139.61).limit(10))
  let fiji = BoundingBox(south: -21, west: 176, north: -12, east: -178)  // across the date line
  let onTheMap = try await beaches.fetch(Query().within(fiji).sorted(by: \.name))

  print(nearest, onTheMap)
}

func searching(beaches: LocalRepository<Beach>, typed: String) async throws {
  for match in try await beaches.matches(Query().matching(typed).limit(20)) {
    print(match.item.name, match.extract?.text ?? "")
  }
}

func paging(beaches: LocalRepository<Beach>) async throws {
  let query = Query<Beach>().sorted(by: \.country).sorted(by: \.rating)
  var page = try await beaches.page(query, limit: 50)
  while let next = page.next {
    page = try await beaches.page(query, after: next, limit: 50)
  }
}

func findingByProperty(beaches: LocalRepository<Beach>) async throws {
  let beach = try await beaches.find(by: \.slug, "jogashima")  // one search in the unique index
  let isAnywhere = try await beaches.exists(where: #Predicate { $0.country == "CL" })

  print(beach as Any, isAnywhere)
}

func distances(beach: Beach) {
  let distance = Distance.between((latitude: beach.latitude, longitude: beach.longitude), (latitude: 35.13, longitude: 139.61))

  print(distance as Any)
}

func aggregates(beaches: LocalRepository<Beach>) async throws {
  let good = try await beaches.count(Query().where(#Predicate { $0.country == "JP" && $0.rating >= 4 }))
  let least = try await beaches.min(of: \.rating)
  let perCountry = try await beaches.grouped(by: \.country)  // ["CL": 12, "JP": 40]
  let stars = try await beaches.sum(of: \.rating, in: Query().where(#Predicate { $0.country == "JP" }))

  print(good, least as Any, perCountry, stars)
}

func slugTaken(beaches: LocalRepository<Beach>, beach: Beach) async throws {
  do {
    try await beaches.save(beach)
  } catch RepositoryError.Code.uniqueViolation {
    print("another beach has the address \(beach.slug)")
  } catch {
    throw error
  }
}

func duplicates(beaches: LocalRepository<Beach>) {
  for duplicate in beaches.openReport.duplicates {
    print("\(duplicate.index): \(duplicate.first) and \(duplicate.second)")
  }
}

func queriesInTransactions(store: Store, beaches: LocalRepository<Beach>) async throws {
  try await store.transaction { transaction in
    for var beach in try transaction.fetch(Query().where(#Predicate { $0.country == "JP" }), in: beaches) {
      beach.rating += 1
      try transaction.save(beach, in: beaches)
    }
  }
  try await beaches.delete(where: Query().where(#Predicate { $0.rating < 2 }))
}
