import Foundation
import Larder

nonisolated struct Spot: Codable, Identifiable, Hashable, Sendable {
  let id: UUID
  var name: String
  var country: String
  var rating: Int
}

func threeLineStart(url: URL) async throws {
  let spots = try await LocalRepository<Spot>(jsonFile: url)
  try await spots.save(Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5))
  let all = try await spots.loadAll()

  print(all.count)
}

func defaultDirectory() async throws -> LocalRepository<Spot> {
  let spots = try await LocalRepository<Spot>(filename: "spots.json")
  return spots
}

func dataDirectory() async throws -> LocalRepository<Spot> {
  let file = DataDirectory.url(for: "surf").appending(path: "spots.json")
  let spots = try await LocalRepository<Spot>(jsonFile: file)
  return spots
}

func reading(spots: LocalRepository<Spot>, id: UUID) async throws {
  let spot = try await spots.find(by: id)  // nil when there is none
  let all = try await spots.loadAll()  // in the order of their keys
  let count = try await spots.count()
  let isThere = try await spots.exists(id)

  let snapshot = spots.snapshot  // one commit, whatever is written meanwhile
  let same = try snapshot.find(by: id)  // synchronous: fits into a view's body

  print(spot as Any, all, count, isThere, same as Any)
}

func writing(spots: LocalRepository<Spot>, spot: Spot, imported: [Spot]) async throws {
  try await spots.save(spot)  // inserts or replaces
  try await spots.insert(spot)  // throws .alreadyExists
  try await spots.update(spot.id) { $0.rating += 1 }  // throws .notFound; no other write comes between
  try await spots.delete(spot.id)  // false when there was none
  try await spots.save(contentsOf: imported)  // one batch: all or none
  try await spots.replaceAll(with: imported)  // readers see the old contents or the new
}

func writingMany(spots: LocalRepository<Spot>) async throws {
  try await spots.update(where: #Predicate { $0.country == "JP" }) { $0.rating += 1 }  // one commit
  try await spots.delete(where: #Predicate { $0.rating < 2 })  // one commit
  try await spots.deleteAll()  // refused while records do not decode
}

func moving(spots: LocalRepository<Spot>, to archive: LocalRepository<Spot>) async throws {
  let everything = try await spots.loadAll(strict: true)  // throws .decodingFailed if any record would be left out
  try await archive.save(contentsOf: everything)
  let good = try await archive.count(Query().where(#Predicate { $0.rating >= 4 }).strict())  // so does every answer to a strict query
  print("moved \(everything.count), of which \(good) are good")
}

func catching(spots: LocalRepository<Spot>, spot: Spot) async throws {
  do {
    try await spots.insert(spot)
  } catch RepositoryError.Code.alreadyExists {
    print("\(spot.name) is there already")
  } catch {
    throw error
  }
}

func lookingAtTheReport(spots: LocalRepository<Spot>) {
  let report = spots.openReport
  if let cut = report.cutTail {
    print("A write that was not finished was cut off and kept in \(cut.quarantineFile)")
  }
  for record in report.undecodable {
    print("\(record.collection) #\(record.key.hash): \(record.error.code)")
  }
}

func addingIndexes(url: URL) async throws {
  let schema = RepositorySchema<Spot>(indexes: [.ordered(\.rating), .ordered(\.country, \.name)])
  let spots = try await LocalRepository<Spot>(jsonFile: url, schema: schema)
  let best = try await spots.fetch(Query().where(#Predicate { $0.rating >= 4 }).sorted(by: \.rating, .reverse))

  print(best.count)
}

func namingTheCollection(url: URL) async throws {
  let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.rating)], renamedFrom: "records")
  let store = try await Store.open(JSONFileBackend(file: url))
  let spots = try await store.repository(schema)
  let visits = try await store.repository(RepositorySchema<Visit>("visits"))

  print(try await spots.count(), try await visits.count())
}

func showingErrors(spots: LocalRepository<Spot>, spot: Spot, show: @escaping (String) -> Void) async {
  do throws(RepositoryError) {
    try await spots.save(spot)
  } catch {
    show(error.code == .full ? "There is no space left. Nothing was saved." : error.localizedDescription)
  }
}

func closing(spots: LocalRepository<Spot>) async throws {
  try await spots.close()
}
