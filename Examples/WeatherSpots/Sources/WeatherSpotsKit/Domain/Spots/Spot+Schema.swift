public import Larder
import LarderSync

extension Spot {
  /// The schema of spots: each query that a command runs has an index here, see ``SpotFilter`` and the queries.
  ///
  /// None of them is unique. The id, which is the key, holds the name and the place already, and names are shared by many places.
  public static let schema = RepositorySchema<Spot>(
    "spots", version: 2,
    indexes: [
      .geo(\.latitude, \.longitude),
      .fullText(\.name, \.notes, \.kind),
      .ordered(\.name),
      .ordered(\.country, \.name),
      .ordered(\.kind, \.name),
      .ordered(.descending(\.rating), .ascending(\.name)),
    ],
    migrations: [fromVersion1])

  /// Version 1 had no rating, notes, tags and visits, and kept countries and kinds as they were typed, so that "fr" and "FR" were two.
  private static let fromVersion1 = Migration(from: 1) { object in
    object["country"] = .string(normalizedCountry(object["country"]?.stringValue ?? ""))
    object["kind"] = .string(normalizedKind(object["kind"]?.stringValue ?? ""))
    object["rating"] = 0
    object["notes"] = ""
    object["tags"] = []
    object["visits"] = 0
  }

  /// Returns the schema of spots that are synced: visits on several devices add up, tags come and go one by one, and of anything else that
  /// two devices have changed the later change holds.
  static func synced(in scope: String, clock: any WallClock) -> RepositorySchema<Spot> {
    schema.synced(in: scope, merge: .fields(counters: [\.visits], sets: [\.tags]), clock: clock)
  }
}
