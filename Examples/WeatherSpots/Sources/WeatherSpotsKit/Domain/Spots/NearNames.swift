import Foundation
public import Larder

/// Names that a person may have meant by one that is not there.
public enum NearNames {
  /// Returns the names that are likest to a text, the likest first.
  ///
  /// Those begin with it or have it in them, or differ in a letter out of three at most. Case and accents make no difference.
  /// - Parameters:
  ///   - text: What was typed.
  ///   - names: What there is.
  ///   - limit: How many at most.
  /// - Returns: None when nothing is like it. Cost: the length of all names times that of the text.
  public static func names(near text: String, in names: some Sequence<String>, limit: Int = 3) -> [String] {
    let wanted = folded(text)
    guard !wanted.isEmpty else { return [] }
    var found: [(distance: Int, name: String)] = []
    for name in Set(names) {
      let candidate = folded(name)
      let isPart = wanted.count > 2 && (contains(candidate, wanted) || candidate.count > 3 && contains(wanted, candidate))
      let most = max(1, wanted.count / 3)
      guard isPart || abs(candidate.count - wanted.count) <= most else { continue }
      let distance = isPart ? 1 : changes(from: wanted, to: candidate)
      if isPart || distance <= most { found.append((distance, name)) }
    }
    return found.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.prefix(limit).map(\.name)
  }

  private static func folded(_ text: String) -> [Character] {
    Array(text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en_US_POSIX")))
  }

  private static func contains(_ text: [Character], _ part: [Character]) -> Bool {
    guard part.count <= text.count else { return false }
    return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
  }

  /// Returns how many letters have to be put in, taken out, changed, or swapped with the next one.
  private static func changes(from first: [Character], to second: [Character]) -> Int {
    var (before, last) = ([Int](), Array(0...second.count))
    for (i, letter) in first.enumerated() {
      var row = [i + 1]
      for (j, other) in second.enumerated() {
        var cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (letter == other ? 0 : 1))
        if i > 0, j > 0, letter == second[j - 1], first[i - 1] == other { cost = min(cost, before[j - 1] + 1) }
        row.append(cost)
      }
      (before, last) = (last, row)
    }
    return last[second.count]
  }
}

extension SpotStore {
  /// Returns the names of spots that a person may have meant; among very many spots only the first are looked at.
  ///
  /// Of an id, the name is looked at.
  public func names(near text: String) async throws(RepositoryError) -> [String] {
    NearNames.names(near: TypedID(text)?.name ?? text, in: try await spots.fetch(Query().limit(20_000)).map(\.name))
  }
}
