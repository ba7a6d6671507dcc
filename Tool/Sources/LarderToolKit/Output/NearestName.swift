/// The search for the name that somebody meant.
package enum NearestName {
  /// The names that are looked through, and the characters of a name: the search takes a step for each pair of characters.
  private static let limits = (names: 10_000, characters: 64)

  /// Returns the name that is nearest to one that is not known; `nil` where none is near.
  ///
  /// Near means that at most a third of the characters differ, and always one may. Case does not count.
  package static func nearest(to name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased())
    guard !wanted.isEmpty, wanted.count <= limits.characters else { return nil }
    let limit = max(1, wanted.count / 3)
    var best: (name: String, distance: Int)?
    for candidate in names.prefix(limits.names) where abs(candidate.count - wanted.count) <= limit {
      let distance = distance(wanted, Array(candidate.lowercased()))
      if distance <= limit, distance < wanted.count, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.name
  }

  /// Returns the question whether the nearest name was meant, behind a semicolon; nothing where no name is near.
  package static func question(about name: String, among names: some Sequence<String>) -> String {
    nearest(to: name, among: names).map { "; did you mean \(TerminalText.escaped($0))?" } ?? ""
  }

  /// Returns the number of characters to add, remove, replace or swap with their neighbour.
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    var (older, old) = ([Int](), Array(0...right.count))
    for i in left.indices {
      var new = [i + 1]
      for j in right.indices {
        var least = min(old[j + 1] + 1, new[j] + 1, old[j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { least = min(least, older[j - 1] + 1) }
        new.append(least)
      }
      (older, old) = (old, new)
    }
    return old[right.count]
  }
}
