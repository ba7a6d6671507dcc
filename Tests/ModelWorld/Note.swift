internal import Larder

/// A record whose stored form changes with each version of the schema, by arithmetic that shows a step left out or done twice.
package struct Note: Codable, Identifiable, Hashable, Sendable {
  package let id: Int
  var amount: Int

  static let ids = 10..<22

  static func schema(_ version: Int) -> RepositorySchema<Note> {
    RepositorySchema(
      "notes", version: version,
      migrations: (1..<version).map { from in
        Migration(from: from) { object in object["amount"] = .init(step((object["amount"]?.intValue ?? -1), from: from)) }
      })
  }

  private static func step(_ amount: Int, from version: Int) -> Int { (amount * 3 + version) % 1_000_003 }

  /// Returns the note as a newer version has it.
  func migrated(from old: Int, to new: Int) -> Note {
    var note = self
    for version in old..<new { note.amount = Self.step(note.amount, from: version) }
    return note
  }
}
