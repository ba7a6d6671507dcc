import Foundation

extension Spot {
  /// The most tags of a spot, unless several devices have added them.
  static let tagLimit = 50
  /// The most visits that are counted.
  static let visitLimit = 1_000_000_000

  /// Returns the stored form of a tag: small letters, without blanks at its ends and without a number sign before it.
  ///
  /// - Throws: `SpotProblem` for what is no tag: it has 1 to 50 bytes, and neither blanks nor commas, semicolons or quotation marks in it.
  public static func normalizedTag(_ text: String) throws(SpotProblem) -> String {
    var tag = text.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces).lowercased()
    if tag.hasPrefix("#") { tag.removeFirst() }
    guard !tag.isEmpty else { throw SpotProblem(.tags, "a tag is empty") }
    guard tag.utf8.count <= 50 else { throw SpotProblem(.tags, "a tag is longer than 50 bytes") }
    // Blanks part tags in a file; a sign before one says whether it comes or goes.
    let isWord = tag.unicodeScalars.allSatisfy { scalar in
      !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control && !",;\"#".unicodeScalars.contains(scalar)
    }
    guard isWord, !tag.hasPrefix("+"), !tag.hasPrefix("-") else {
      throw SpotProblem(.tags, "a tag is not one word, without blanks, commas, semicolons, quotation marks and number signs")
    }
    return tag
  }

  /// Returns tags in their stored form and order.
  ///
  /// - Parameter known: The number of tags that there were: devices that each add some may have more together than one may add.
  /// - Throws: `SpotProblem` for what is no tag, and for too many.
  static func normalizedTags(_ texts: [String], known: Int = 0) throws(SpotProblem) -> [String] {
    var tags: Set<String> = []
    for text in texts { tags.insert(try normalizedTag(text)) }
    guard tags.count <= max(tagLimit, known) else { throw SpotProblem(.tags, "there are more than \(tagLimit) tags") }
    return tags.sorted()
  }

  static func checkedVisits(_ visits: Int) throws(SpotProblem) -> Int {
    guard (0...visitLimit).contains(visits) else { throw SpotProblem(.visits, "visits is outside 0 to \(visitLimit)") }
    return visits
  }
}
