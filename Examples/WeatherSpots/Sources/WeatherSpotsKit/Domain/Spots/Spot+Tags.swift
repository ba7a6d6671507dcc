import Foundation

extension Spot {
  /// Maximum number of tags of a spot, which a sync merge of several devices can exceed.
  static let tagLimit = 50
  /// Maximum count of visits.
  static let visitLimit = 1_000_000_000

  /// Returns the stored form of a tag: in lower case, without surrounding blanks and without a leading number sign.
  ///
  /// A tag has 1 to 50 bytes, contains no blanks, control characters, commas, semicolons, quotation marks or number signs, and does not
  /// begin with + or -.
  /// - Throws: `SpotProblem` for any other text.
  public static func normalizedTag(_ text: String) throws(SpotProblem) -> String {
    // Composed and decomposed accents look alike, but would be two tags.
    var tag = text.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces).lowercased()
    if tag.hasPrefix("#") { tag.removeFirst() }
    guard !tag.isEmpty else { throw SpotProblem(.tags, "a tag is empty") }
    guard tag.utf8.count <= 50 else { throw SpotProblem(.tags, "a tag is longer than 50 bytes") }
    // Blanks separate the tags in a CSV file. On the command line + or - before a tag adds or removes it.
    let isWord = tag.unicodeScalars.allSatisfy { scalar in
      !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control && !",;\"#".unicodeScalars.contains(scalar)
    }
    guard isWord, !tag.hasPrefix("+"), !tag.hasPrefix("-") else {
      throw SpotProblem(.tags, "a tag is not one word, without blanks, commas, semicolons, quotation marks and number signs")
    }
    return tag
  }

  /// Returns tags in their stored form, sorted and without duplicates.
  ///
  /// - Parameter known: The number of tags that the spot already has. It raises the limit, which a merge of several devices can exceed.
  /// - Throws: `SpotProblem` for an invalid tag, and for too many tags.
  static func normalizedTags(_ texts: [String], known: Int = 0) throws(SpotProblem) -> [String] {
    var tags: Set<String> = []
    for text in texts { tags.insert(try normalizedTag(text)) }
    // Counted after normalization, so that "Surf" and "#surf" count once.
    guard tags.count <= max(tagLimit, known) else { throw SpotProblem(.tags, "there are more than \(tagLimit) tags") }
    return tags.sorted()
  }

  static func checkedVisits(_ visits: Int) throws(SpotProblem) -> Int {
    guard (0...visitLimit).contains(visits) else { throw SpotProblem(.visits, "visits is outside 0 to \(visitLimit)") }
    return visits
  }
}
