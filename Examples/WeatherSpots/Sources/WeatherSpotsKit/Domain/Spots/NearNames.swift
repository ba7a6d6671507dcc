public import Larder

/// Suggestions for a misspelled name.
public enum NearNames {
  /// Returns the names that are most similar to a text, the most similar first.
  ///
  /// A similar name contains the text, is contained in it, or differs in at most one letter out of three. Case and accents do not count.
  /// - Parameters:
  ///   - text: The text that a person typed.
  ///   - names: The existing names.
  ///   - limit: The maximum number of results.
  /// - Returns: The similar names, or an empty array. Cost: the length of all names times that of the text.
  public static func names(near text: String, in names: some Sequence<String>, limit: Int = 3) -> [String] {
    let wanted = Array(text.foldedForSearch)
    guard !wanted.isEmpty else { return [] }
    var found: [(distance: Int, name: String)] = []
    // Many spots share a name, and one suggestion of it is enough.
    for name in Set(names) {
      let candidate = Array(name.foldedForSearch)
      // Nearly every name contains a text of one or two letters.
      let isPart = wanted.count > 2 && (contains(candidate, wanted) || candidate.count > 3 && contains(wanted, candidate))
      // At least one change, so that a text of two letters can have a typing error.
      let most = max(1, wanted.count / 3)
      // The edit distance is never below the difference in length, so this skips its computation for most names.
      guard isPart || abs(candidate.count - wanted.count) <= most else { continue }
      let distance = isPart ? 1 : changes(from: wanted, to: candidate)
      if isPart || distance <= most { found.append((distance, name)) }
    }
    return found.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.prefix(limit).map(\.name)
  }

  private static func contains(_ text: [Character], _ part: [Character]) -> Bool {
    guard part.count <= text.count else { return false }
    return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
  }

  /// Returns the edit distance of two texts: the number of insertions, deletions, substitutions and swaps of neighboring letters.
  private static func changes(from first: [Character], to second: [Character]) -> Int {
    var (before, last) = ([Int](), Array(0...second.count))
    for (i, letter) in first.enumerated() {
      var row = [i + 1]
      for (j, other) in second.enumerated() {
        var cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (letter == other ? 0 : 1))
        // Swapped letters are a frequent typing error, and would count as two substitutions.
        if i > 0, j > 0, letter == second[j - 1], first[i - 1] == other { cost = min(cost, before[j - 1] + 1) }
        row.append(cost)
      }
      (before, last) = (last, row)
    }
    return last[second.count]
  }
}

extension SpotStore {
  /// Returns the names of stored spots that are similar to a text, which may be a name or an id.
  ///
  /// Of an id only the name is compared. Only the first 20,000 spots of the store are compared.
  public func names(near text: String) async throws(RepositoryError) -> [String] {
    NearNames.names(near: TypedID(text)?.name ?? text, in: try await spots.fetch(Query().limit(20_000)).map(\.name))
  }
}
