public import Larder
import LarderSync

extension Spot {
  /// The repository schema of spots, with an index for each query that a command runs.
  ///
  /// For the queries see ``SpotFilter``. No index is unique: the id contains the name and the place already, and many places share a name.
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

  /// Migration from version 1, which had no rating, notes, tags and visits.
  ///
  /// Version 1 stored countries and kinds as typed, so that "fr" and "FR" were two countries.
  private static let fromVersion1 = Migration(from: 1) { object in
    object["country"] = .string(normalizedCountry(object["country"]?.stringValue ?? ""))
    object["kind"] = .string(normalizedKind(object["kind"]?.stringValue ?? ""))
    object["rating"] = 0
    object["notes"] = ""
    object["tags"] = []
    object["visits"] = 0
  }

  /// Returns the schema of synced spots, with the merge rules for conflicting changes of two devices.
  ///
  /// Visits add up, tags merge one by one, and for any other field the later change wins.
  static func synced(in scope: String, clock: any WallClock) -> RepositorySchema<Spot> {
    schema.synced(in: scope, merge: .fields(counters: [\.visits], sets: [\.tags]), clock: clock)
  }
}
