/// Search for the existing name that is most similar to a mistyped one.
package enum NearestName {
  /// Maximum number of names to search, and of characters in a name.
  ///
  /// The cost grows with the product of two names' lengths.
  private static let limits = (names: 10_000, characters: 64)

  /// Returns the name that is most similar to an unknown one.
  ///
  /// `nil` if none is similar.
  ///
  /// Names are similar if at most a third of the characters differ, or one character. Case does not count.
  package static func nearest(to name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased())
    guard !wanted.isEmpty, wanted.count <= limits.characters else { return nil }
    let limit = max(1, wanted.count / 3)
    var best: (name: String, distance: Int)?
    // The distance is at least the difference of the lengths, which is much cheaper to compute.
    for candidate in names.prefix(limits.names) where abs(candidate.count - wanted.count) <= limit {
      let distance = distance(wanted, Array(candidate.lowercased()))
      // Replacing all characters turns any name into any other. Without this bound, each single letter would be similar to each other one.
      if distance <= limit, distance < wanted.count, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.name
  }

  /// Returns a question with the most similar name, to append to an error.
  ///
  /// Empty if no name is similar.
  package static func question(about name: String, among names: some Sequence<String>) -> String {
    nearest(to: name, among: names).map { "; did you mean \(TerminalText.escaped($0))?" } ?? ""
  }

  /// Returns the number of characters to add, remove, replace or swap with a neighbour (optimal string alignment distance).
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var (older, old) = ([Int](), Array(0...right.count))
    for i in left.indices {
      var new = [i + 1]
      for j in right.indices {
        var least = min(old[j + 1] + 1, new[j] + 1, old[j] + (left[i] == right[j] ? 0 : 1))
        // Two swapped letters are one typing mistake. Counted as two replacements, a short name would be out of reach.
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { least = min(least, older[j - 1] + 1) }
        new.append(least)
      }
      (older, old) = (old, new)
    }
    return old[right.count]
  }
}
